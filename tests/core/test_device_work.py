"""Waits and passes of heatmaps on an accelerator, counted on the simulated one in a process of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from core.attribution import METHODS
from core.network import device as module_of_device
from core.network.classifier import Classifier
from core.types import Explanation
from tests.core.accelerator import DEVICE, open_accelerator, run_in_own_process
from tests.core.device_work import DeviceWork, count_device_work
from tests.core.networks import awkward, pictures

Sizes = dict[int, int]
"""How many passes have each number of images."""
SETTINGS: dict[str, dict[str, Any]] = {
    "integrated_gradients": {"steps": 64},
    "expected_gradients": {"samples": 32},
    "smoothgrad": {"samples": 32},
    "vargrad": {"samples": 32},
    "occlusion": {"window": 2, "stride": 1},
    "bayesian_teaching": {"samples": 1000},
    "rise": {"samples": 1000},
}
MORE: dict[str, dict[str, Any]] = {
    "integrated_gradients": {"steps": 300},
    "expected_gradients": {"samples": 150},
    "smoothgrad": {"samples": 300},
    "vargrad": {"samples": 300},
    "bayesian_teaching": {"samples": 2000},
    "rise": {"samples": 2000},
}
"""Settings that need further passes of the same batch size."""


@pytest.fixture
def network() -> Iterator[Classifier]:
    """A network of 12 px on the simulated device, of which a pass takes 256 inputs."""
    with open_accelerator() as name:
        if name != DEVICE:
            pytest.skip("only the simulated device counts")
        yield awkward(device=name)


def test_everything_in_a_process_of_its_own() -> None:
    """Every test below, which are skipped here."""
    assert run_in_own_process(__file__) > len(EXPECTED)


def explain(name: str, network: Classifier, images: torch.Tensor, **parameters: Any) -> Explanation:
    targets = [i % 3 for i in range(len(images))]
    generator = torch.Generator().manual_seed(7)
    return METHODS[name](network, images, targets, generator=generator, **SETTINGS.get(name, {}) | parameters)


def count(name: str, network: Classifier, images: int, **parameters: Any) -> DeviceWork:
    """Count a call after one that has made the faster copies of the network."""
    explain(name, network, pictures(1), **parameters)
    with count_device_work() as work:
        explain(name, network, pictures(images), **parameters)
    return work


EXPECTED: dict[str, tuple[int, tuple[Sizes, Sizes], tuple[Sizes, Sizes]]] = {
    "gradient": (2, ({1: 1}, {1: 1}), ({8: 1}, {8: 1})),
    "input_x_gradient": (2, ({1: 1}, {1: 1}), ({8: 1}, {8: 1})),
    "integrated_gradients": (3, ({1: 2, 64: 1}, {64: 1}), ({8: 2, 256: 2}, {256: 2})),
    "expected_gradients": (3, ({1: 1, 32: 2}, {32: 1}), ({8: 1, 32: 1, 256: 1}, {256: 1})),
    "smoothgrad": (2, ({1: 1, 32: 1}, {32: 1}), ({8: 1, 256: 1}, {256: 1})),
    "vargrad": (2, ({1: 1, 32: 1}, {32: 1}), ({8: 1, 256: 1}, {256: 1})),
    "grad_cam": (2, ({1: 1}, {}), ({8: 1}, {})),
    "occlusion": (3, ({1: 2, 57: 1, 64: 1}, {}), ({8: 2, 200: 1, 256: 3}, {})),
    "bayesian_teaching": (4, ({1: 1, 40: 1, 64: 15}, {}), ({8: 1, 64: 1, 256: 31}, {})),
    "rise": (4, ({1: 1, 40: 1, 64: 15}, {}), ({8: 1, 64: 1, 256: 31}, {})),
}
"""Waits of a call, and its forward and backward passes by their number of images, for 1 and for 8 images."""


@pytest.mark.parametrize("name", EXPECTED)
def test_the_processor_waits_a_few_times_and_passes_are_full(network: Classifier, name: str) -> None:
    """Catches a value read for each image, point, sample or mask, and images with passes of their own.

    Expected: by hand, 64 points of 8 images are two passes of 256, and so on; a call waits for its heatmaps, logits,
    standard errors and ends of paths, each once. Before that, 8 images waited 68 times for integrated gradients and
    199 times for Bayesian teaching, in passes of 64 and less.
    """
    waits, *passes = EXPECTED[name]
    for images, (forwards, backwards) in zip((1, 8), passes, strict=True):
        work = count(name, network, images)
        assert work.waits == {"to the CPU": waits}, images
        assert (Counter(work.forwards), Counter(work.backwards)) == (forwards, backwards)


@pytest.mark.parametrize("name", MORE)
def test_more_points_or_samples_wait_no_longer(network: Classifier, name: str) -> None:
    """Catches one wait for each pass, which the table of one size cannot tell from one wait for each call."""
    few, many = (count(name, network, 2, **settings) for settings in (SETTINGS[name], MORE[name]))
    assert len(many.forwards) > len(few.forwards)
    assert many.waits == few.waits


@pytest.mark.parametrize("name", EXPECTED)
def test_no_pass_is_larger_than_memory_allows(network: Classifier, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches images of a call that are packed beyond the budget: 9 inputs of 12 px fit 1 MiB, and the call has 20.

    Also a wait for each part of the images. Expected for the heatmaps: those of each image alone, with all the memory.
    """
    images = pictures(20)
    settings = {"samples": 64} if name in ("bayesian_teaching", "rise") else {}
    alone = torch.cat([explain_alone(name, network, images, i, **settings) for i in (0, 7, 19)])
    monkeypatch.setattr(module_of_device, "MEMORY_MIB", "1")
    with count_device_work() as work:
        together = explain(name, network, images, **settings).map[[0, 7, 19]]
    assert 7 <= max(work.forwards) <= 9
    assert max(work.backwards, default=0) <= 9
    assert work.waits == {"to the CPU": EXPECTED[name][0]}
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-6 * max(1.0, float(alone.abs().max())))


def explain_alone(name: str, network: Classifier, images: torch.Tensor, i: int, **parameters: Any) -> torch.Tensor:
    generator = torch.Generator().manual_seed(7)
    settings = SETTINGS.get(name, {}) | parameters
    return METHODS[name](network, images[i : i + 1], [i % 3], generator=generator, **settings).map


def test_a_tolerance_waits_once_for_each_number_of_steps(network: Classifier) -> None:
    """Catches steps that are doubled image by image. Expected: 3 waits, and one for each doubling up to 1,024."""
    rounds = {c.parameters["steps"] for c in explain("integrated_gradients", network, pictures(8), tolerance=1e-7)
              .certificates}  # fmt: skip
    assert max(rounds) == 1024
    assert count("integrated_gradients", network, 8, tolerance=1e-7).waits == {"to the CPU": 3 + 4}


def test_float64_on_the_device_is_a_small_share(network: Classifier) -> None:
    """Catches paths computed in float64 there: before, 1.8 million values for 8 images, of 0.2 million in all points.

    Expected: the sums (8, 3, 12, 12) taken in and summed over the channels, by hand.
    """
    pixels = 8 * 3 * 12 * 12
    assert count("integrated_gradients", network, 8).float64 <= 6 * pixels


def test_every_kind_of_wait_is_counted(network: Classifier) -> None:
    """Negative control: a count of 2 could be that of a tool which sees nothing."""
    there, here = torch.arange(4.0).to(network.device), torch.tensor([0, 1])
    causes = {
        "to the CPU": lambda: there.tolist(),
        "_local_scalar_dense": lambda: bool(there.sum() > 0),
        "nonzero": lambda: there.nonzero(),
        "equal": lambda: torch.equal(there, there),
        "indices by truth": lambda: there[there > 1],
        "indices to the device": lambda: there[here],
        "to the device": lambda: here.to(network.device),
        "masked_select": lambda: there.masked_select(there > 1),
    }
    for cause, wait in causes.items():
        with count_device_work() as work:
            wait()
        assert work.waits[cause] == 1, cause
    with count_device_work() as work:
        here.to(network.device, non_blocking=True)
        there[1:] + 1
    assert not work.total_waits
