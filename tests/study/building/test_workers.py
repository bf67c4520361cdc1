"""Several processes on one workspace: they share the work, do not collide, and make the same bytes."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
import torch

from core.errors import ForetellError
from core.types import silent
from study.building.build import build
from study.building.plan import make_planner
from study.building.stimuli import StimulusStudio
from study.building.workers import Helpers, build_with, helpers_here
from study.bundle import MANIFEST
from study.network.sources import open_classifier, open_sources
from study.workspace.files import gather_results
from study.workspace.parallel import MOST
from study.workspace.workspace import ROOT, bundle_named
from tests.study.studies import SMALL


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The study file's folder and the bundle of one process on one core."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "tiny.toml").write_text(SMALL)
    with threads(1):
        return folder, build(folder / "tiny.toml", folder / "home").folder


@contextmanager
def threads(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def home(alone, tmp_path):
    """A workspace that has the predictions already, and nothing else: they are half of a build."""
    shutil.copytree(alone[0] / "home" / "cache" / "predictions", tmp_path / "home" / "cache" / "predictions")
    return tmp_path / "home"


def content(folder):
    """Every byte of a bundle that another machine would be handed."""
    assets = {path.name: path.read_bytes() for path in (folder / "assets").iterdir()}
    return assets | {MANIFEST: (folder / MANIFEST).read_bytes()}


def unit(folder, name):
    """A unit made by whoever claims it; the file says by whom."""

    def make(k, beat):
        time.sleep(0.02)
        (folder / f"{k}.txt").write_text(f"{name} {time.monotonic_ns()}")
        with (folder / "log").open("a") as log:
            log.write(f"{k}\n")
        return (folder / f"{k}.txt").read_text()

    def load(k):
        path = folder / f"{k}.txt"
        return path.read_text() if path.is_file() else None

    return gather_results(range(40), lambda k: folder / f"{k}.txt", load, make, silent, "units")


def test_no_unit_is_made_twice_and_both_work(tmp_path):
    context = multiprocessing.get_context("fork")
    pool = [context.Process(target=unit, args=(tmp_path, name)) for name in ("one", "two")]
    for process in pool:
        process.start()
    for process in pool:
        process.join(300)
        assert process.exitcode == 0
    made = (tmp_path / "log").read_text().split()
    assert sorted(made, key=int) == [str(k) for k in range(40)]
    assert {(tmp_path / f"{k}.txt").read_text().split()[0] for k in range(40)} == {"one", "two"}


def test_the_bytes_do_not_depend_on_the_cores(alone, tmp_path):
    """Catches a study hash that another machine does not get, also where the answers to its pictures were asked before.

    With two threads deletion and insertion of this study's maps differ from those with one in the fourth digit.
    """
    folder, expected = alone
    with threads(2):
        make_planner(open_sources(folder / "tiny.toml"), tmp_path / "home" / "cache")
        bundle = build(folder / "tiny.toml", tmp_path / "home")
        assert torch.get_num_threads() == 2
    assert content(bundle.folder) == content(expected)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_two_workers_make_the_bytes_of_one(alone, home, engine, monkeypatch):
    """The builder makes no trial before a helper has finished one, so a helper that does nothing is seen."""
    if engine == "ray" and importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    folder, expected = alone
    helpers = Helpers(1 if engine == "processes" else 2, engine)
    original = StimulusStudio.make

    def patient(self, planned, progress):
        deadline = time.monotonic() + 600
        while not list(home.glob("bundles/*/units/*.json")):
            assert time.monotonic() < deadline, "no helper made a trial"
            time.sleep(0.05)
        return original(self, planned, progress)

    monkeypatch.setattr(StimulusStudio, "make", patient)
    bundle = build_with(helpers, folder / "tiny.toml", home)
    assert content(bundle.folder) == content(expected)
    assert list(bundle.folder.rglob("*.partial")) == []


STARTED = """
import sys
from pathlib import Path
from study.building.build import build
from study.building.plan import make_planner
from study.network.sources import open_sources
build(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_second_build_beside_the_first_and_a_kill_9_change_nothing(alone, home):
    """One builder is killed while both work; the other takes its claims over and ends with the same bytes."""
    folder, expected = alone
    command = [sys.executable, "-c", STARTED, str(folder / "tiny.toml"), str(home)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    first, second = (subprocess.Popen(command, env=environment) for _ in range(2))
    deadline = time.monotonic() + 600
    while not list(home.glob("cache/maps/*.safetensors")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert second.wait(600) == 0
    (bundle,) = (home / "bundles").iterdir()
    assert content(bundle) == content(expected)


def test_a_build_that_was_killed_makes_no_map_twice(alone, home):
    folder, _ = alone
    maps = home / "cache" / "maps"

    def stop(done, total, what):
        if what == "explaining trials" and maps.is_dir() and len(list(maps.glob("*.safetensors"))) >= 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(folder / "tiny.toml", home, stop)
    kept = {path: path.stat().st_mtime_ns for path in maps.glob("*.safetensors")}
    assert 7 <= len(kept) < 10  # in the middle of the second trial
    build(folder / "tiny.toml", home)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_a_damaged_map_or_shard_is_made_again(alone, tmp_path):
    folder, expected = alone
    home = shutil.copytree(folder / "home", tmp_path / "home")
    for path in [*home.glob("cache/maps/*.safetensors"), *home.glob("cache/predictions/*/*.npz")]:
        path.write_bytes(path.read_bytes()[:-40])
    (bundle,) = (home / "bundles").iterdir()
    (bundle / MANIFEST).unlink()
    for path in (bundle / "units").iterdir():
        path.unlink()
    assert content(build(folder / "tiny.toml", home).folder) == content(expected)


def test_what_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(ForetellError, match=r"There is no device 'cuda:99' here\. There is: cpu"):
        open_classifier("scenes", ROOT, "cuda:99")
    with pytest.raises(ForetellError, match=r"Unknown engine 'dask'\. Use one of processes, ray"):
        Helpers(1, "dask")
    with pytest.raises(ForetellError, match="give at least 2"):
        Helpers(0)
    assert open_classifier("scenes", ROOT, "cpu").device == torch.device("cpu")


def test_common_masks_are_common(alone, home, tmp_path):
    (tmp_path / "common.toml").write_text(SMALL.replace("[saliency]", "[saliency]\ncommon_masks = true"))
    manifest = build(tmp_path / "common.toml", home).manifest
    assert len({trial.saliency.seed for trial in manifest.trials}) == 1
    own = bundle_named(alone[0] / "home", "tiny").manifest
    assert len({trial.saliency.seed for trial in own.trials}) == 3
    assert json.loads(json.dumps(own.config))["saliency"]["common_masks"] is False


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU does the work")
@pytest.mark.parametrize(("cores", "helpers"), [(1, None), (2, 1), (MOST + 4, MOST - 1)])
def test_a_build_takes_the_cores_that_torch_would_take(cores, helpers):
    """Catches eight processes on a machine whose owner allowed one core, and one process where there are several."""
    with threads(cores):
        found = helpers_here()
    assert (found and found.count) == helpers
