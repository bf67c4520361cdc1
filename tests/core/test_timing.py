"""The choice between two ways to compute, and the file that keeps it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from core.attribution.common import gradient_and_logits
from core.network import timing
from core.network.classifier import Classifier
from tests.core.networks import pictures, unit

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Begin with an empty cache, on one thread: then processor seconds are measured."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(timing, "_known", {})
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield tmp_path
    torch.set_num_threads(threads)


def work(amount):
    """Return work that takes processor time in proportion to ``amount``."""
    return lambda: sum(range(amount))


def fail():
    raise AssertionError("timed a second time")


@pytest.mark.parametrize(("own", "onednn", "expected"), [(400_000, 20_000, True), (20_000, 400_000, False)])
def test_the_faster_way_is_chosen_and_kept(own, onednn, expected, monkeypatch):
    """Catches the two exchanged, and a choice that is measured again in the next process."""
    assert timing.is_onednn_faster("a layer", work(own), work(onednn)) is expected
    monkeypatch.setattr(timing, "_known", {})
    assert timing.is_onednn_faster("a layer", fail, fail) is expected
    assert timing.read_choices(timing.locate_choices()) == {"a layer": expected}


def test_equally_fast_ways_stay_with_pytorch(monkeypatch):
    """Catches a choice by chance: seconds of a clock that both take alike."""
    ticks = iter(range(1000))
    monkeypatch.setattr(timing.time, "thread_time", lambda: next(ticks))
    assert not timing.is_onednn_faster("a layer", lambda: None, lambda: None)


def test_the_choice_that_another_process_wrote_first_holds():
    """Catches two processes of one build that compute in different ways: the other writes while this one measures."""
    file = timing.locate_choices()

    def write_meanwhile():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a layer: own\n")

    assert timing.is_onednn_faster("a layer", lambda: work(400_000)() and write_meanwhile(), work(10)) is False


def test_a_damaged_file_is_read_as_far_as_it_goes():
    file = timing.locate_choices()
    file.parent.mkdir(parents=True)
    file.write_bytes(b"a layer: onednn\n\xff\x00\nanother: fast\na layer: own\nlast: ow")
    assert timing.read_choices(file) == {"a layer": True}


def test_where_nothing_can_be_kept_pytorch_computes(cache):
    """Catches processes that choose for themselves: a file where the folder should be."""
    (cache / "foretell").write_text("")
    assert timing.is_onednn_faster("a layer", work(400_000), work(10)) is False


def test_two_processes_at_once_choose_the_same():
    """Catches a race: both begin with an empty cache and measure ways that take the same time."""
    code = (
        "from core.network.timing import *; w = lambda: sum(range(9999)); "
        "print([is_onednn_faster(str(i), w, w) for i in range(60)])"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    first, second = (process.communicate()[0] for process in running)
    assert first == second
    assert first.startswith("[")


def test_a_gradient_is_the_same_number_either_way(monkeypatch):
    """Catches an input that timing changes: a network that begins in place. Expected: the other way, to rounding."""
    network = nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(3, 4, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    classifier = Classifier(network, unit, name="places")
    found = []
    for faster in (True, False):
        monkeypatch.setattr(timing, "_known", {})
        monkeypatch.setattr(timing, "_time", lambda own, onednn, faster=faster: [own(), onednn()] and faster)
        timing.locate_choices().unlink(missing_ok=True)
        found.append(gradient_and_logits(classifier, pictures(3), torch.tensor([0, 1, 2])))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)
    assert list(timing.read_choices(timing.locate_choices())) == ["gradient of Sequential, 16 parameters, 3 x 12 x 12"]
