"""Images on which methods or networks disagree: planted ones come first, and the divergence is SciPy's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.spatial.distance import jensenshannon

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.types import silent
from data.types import ImageSet
from inquiry.debugging.disagreement import MethodComparison, compare_networks, jensen_shannon, match_classes

SIDE, PLANTED, COUNT = 6, 13, 20
PAIR = ("gradient", "input_x_gradient")


def preprocess(image: Image.Image) -> torch.Tensor:
    pixels = np.asarray(image.resize((SIDE, SIDE)), dtype=np.float32)
    return torch.from_numpy(pixels.transpose(2, 0, 1).copy() / 255)


def build_network(*names: str, weights: torch.Tensor | None = None) -> Classifier:
    """A linear network whose weights rise from the first pixel to the last: its gradient is the same for each image."""
    linear = torch.nn.Linear(3 * SIDE * SIDE, len(names))
    rising = torch.linspace(0.1, 1, SIDE * SIDE).repeat(3)
    with torch.no_grad():
        linear.weight.copy_(torch.stack([rising, -rising]) if weights is None else weights)
        linear.bias.zero_()
    return Classifier(torch.nn.Sequential(torch.nn.Flatten(), linear), preprocess, names, name="linear")


@pytest.fixture
def images() -> ImageSet:
    """Even grey images, on which gradient and input x gradient rank all pixels alike; one falls as the weights rise."""

    def draw(i: int) -> Image.Image:
        even = np.full((SIDE, SIDE), 60.0 + 5 * i)
        falling = np.geomspace(255, 2, SIDE * SIDE).reshape(SIDE, SIDE)
        grey = falling if i == PLANTED else even
        return Image.fromarray(np.repeat(grey.astype(np.uint8)[:, :, None], 3, 2))

    labels = np.zeros(COUNT, dtype=np.int64)
    return ImageSet("grey", ("up", "down"), labels, tuple(map(str, range(COUNT))), draw, "grey")


def test_the_one_image_on_which_two_methods_disagree_comes_first(images: ImageSet, tmp_path: Path) -> None:
    """Catches values that reach the wrong image, in another order than that of the set and over several batches."""
    rows = list(range(COUNT))[::-1]
    found = MethodComparison(build_network("up", "down"), images, tmp_path, PAIR).compare(rows, silent)
    assert found.methods == PAIR
    assert min(found.correlations, key=found.correlations.get) == PLANTED  # type: ignore[arg-type]
    assert found.correlations[PLANTED] < 0
    assert all(value > 0.99 for i, value in found.correlations.items() if i != PLANTED)


def test_what_was_compared_is_kept_when_the_work_is_stopped(images: ImageSet, tmp_path: Path) -> None:
    """Catches a second click that starts from nothing, and values that another set of methods left behind."""
    network, rows = build_network("up", "down"), list(range(COUNT))

    def stop(done: int, total: int, what: str) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        MethodComparison(network, images, tmp_path, PAIR).compare(rows, stop)
    assert MethodComparison(network, images, tmp_path, PAIR).count_missing(rows) == COUNT - 8
    assert MethodComparison(network, images, tmp_path, (*PAIR, "occlusion")).count_missing(rows) == COUNT
    reports: list[int] = []
    MethodComparison(network, images, tmp_path, PAIR).compare(rows, lambda done, *_: reports.append(done))
    assert reports[0] == 8
    assert MethodComparison(network, images, tmp_path, PAIR).count_missing(rows) == 0


def test_a_method_that_does_not_apply_is_named_and_two_are_needed(images: ImageSet, tmp_path: Path) -> None:
    """Catches one refusal that takes the other methods with it, and an average over a single method."""
    network = build_network("up", "down")
    found = MethodComparison(network, images, tmp_path, (*PAIR, "grad_cam")).compare([0, 1], silent)
    assert found.methods == PAIR
    assert list(found.refused) == ["grad_cam"]
    assert "no layer" in found.refused["grad_cam"]
    with pytest.raises(ForetellError, match="Fewer than two of the methods apply to linear"):
        MethodComparison(network, images, tmp_path, ("gradient", "grad_cam")).compare([0], silent)


def test_the_divergence_is_that_of_scipy_and_of_the_closed_form() -> None:
    """Catches a square root, nats, and rows that do not sum to 1 after classes were left out."""
    draws = np.random.default_rng(5)
    p, q = draws.dirichlet(np.ones(6), 9), draws.dirichlet(np.ones(6), 9)
    np.testing.assert_allclose(jensen_shannon(p * 0.3, q), jensenshannon(p, q, base=2, axis=1) ** 2, rtol=1e-9)
    certain = np.eye(2)
    assert jensen_shannon(certain, certain).tolist() == [0.0, 0.0]
    assert jensen_shannon(certain, certain[::-1]).tolist() == [1.0, 1.0]


def test_networks_are_compared_over_their_common_classes_whatever_their_order(images: ImageSet, tmp_path: Path) -> None:
    """Catches classes matched by number: the same network with its classes the other way round is the same network."""
    rising = torch.linspace(0.1, 1, SIDE * SIDE).repeat(3)
    network = build_network("up", "down")
    turned = build_network("down, low", "up", weights=torch.stack([-rising, rising]))
    common = match_classes(network.categories, turned.categories)
    assert (common.names, common.first, common.second) == (("up", "down"), (0, 1), (1, 0))
    np.testing.assert_allclose(compare_networks(network, turned, images, tmp_path, silent), 0, atol=1e-6)
    opposite = build_network("down, low", "up", weights=torch.stack([rising, -rising]))
    assert (compare_networks(network, opposite, images, tmp_path, silent) > 0.9).all()
    with pytest.raises(ForetellError, match="have 0 classes in common"):
        compare_networks(network, build_network("a", "b"), images, tmp_path, silent)


def test_classes_of_two_networks_match_by_names_that_are_unique() -> None:
    """Catches the crane that is a bird compared with the machine, and a mild disease compared with a severe one."""
    common = match_classes(("crane", "Crane", "tench, Tinca tinca"), ("crane", "tench"))
    assert (common.names, common.first, common.second) == (("tench",), (2,), (1,))
    assert match_classes(("crane", "Crane"), ("crane", "Crane")).first == (0, 1)
    assert match_classes(("eye, mild", "healthy"), ("healthy", "eye, severe")).names == ("healthy",)
    common = match_classes(("maillot, tank suit", "maillot"), ("maillot", "boat", "maillot, tank suit"))
    assert (common.names, common.second) == (("maillot, tank suit", "maillot"), (2, 0))
