"""Integrated gradients along any path: closed forms of Sundararajan et al. 2017, and ways that are not straight."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from torch import nn

from core.attribution.baselines import baselines
from core.attribution.gradients.plain import integrated_gradients
from core.attribution.paths import PATHS, PathName, along
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import SIDE, awkward, pictures, raw, unit


class Formula(nn.Module):
    """f of the first two of three inputs."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        value = self.f(x[:, 0, 0, 0], x[:, 0, 0, 1])
        return torch.stack([value, -value], 1)


def two(f) -> Classifier:
    return Classifier(Formula(f), raw, name="of two")


def point(first: float, second: float) -> torch.Tensor:
    return torch.tensor([first, second, 0.0]).view(1, 1, 1, 3)


def product(a, b):
    return a * b


def one_by_one(start, end, positions):
    """The pixels change one after the other, in the order of reading."""
    count = end[0].numel()
    moved = (positions[:, None] * count - torch.arange(count)).clamp(0, 1).view(-1, 1, *end.shape[1:])
    return start + moved * (end - start)


def linear():
    """A linear network and its weights (2, 3, SIDE, SIDE)."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    weight = torch.randn(network[1].weight.shape, generator=torch.Generator().manual_seed(3))
    network[1].weight.data.copy_(weight)
    return Classifier(network, unit, name="linear"), weight.view(2, 3, SIDE, SIDE)


def test_two_networks_of_one_function_are_explained_alike():
    """Sundararajan et al. 2017, figure 7: (1.5, -0.5) for relu(relu(x1) - 1 - relu(x2)) and for
    relu(relu(x1 - 1) - relu(x2)) at (3, 1) from 0."""
    relu = torch.relu
    for f in (lambda a, b: relu(relu(a) - 1 - relu(b)), lambda a, b: relu(relu(a - 1) - relu(b))):
        found = integrated_gradients(two(f), point(3, 1), [0], baseline="zero", steps=50)
        assert found.map.flatten().tolist() == pytest.approx([1.5, -0.5, 0], abs=1e-6)


def test_a_product_by_five_midpoints():
    """x1 x2 at (3, -2): the integrand is linear, so midpoints are exact: (-3, -3), sum f = -6."""
    found = integrated_gradients(two(product), point(3, -2), [0], baseline="zero", steps=5)
    assert found.map.flatten().tolist() == pytest.approx([-3, -3, 0], abs=1e-6)
    assert found.certificates[0].completeness == pytest.approx(0, abs=1e-6)


def test_another_way_gives_the_product_to_whom_comes_last():
    """Closed form of x1 x2 along the axes: x1 comes while x2 is 0 and gets nothing, x2 gets all of -6."""
    origin, end, first = torch.zeros(1, 1, 1, 3), point(3, -2), torch.tensor([0])
    for quadrature in ("midpoint", "gauss_legendre"):
        found = along(two(product), one_by_one, origin, end, first, quadrature, 300)
        assert found.flatten().tolist() == pytest.approx([0, -6, 0], abs=0.05)
    found = along(two(product), PATHS["straight"], origin, end, first, "midpoint", 5)
    assert found.flatten().tolist() == pytest.approx([-3, -3, 0])


@pytest.mark.parametrize("quadrature", ["midpoint", "gauss_legendre"])
@pytest.mark.parametrize("path", [*PATHS.values(), one_by_one], ids=lambda path: path.__name__)
def test_a_linear_network_is_explained_exactly_along_every_way(path, quadrature):
    """Closed form w (x - b) whatever the path, the rule and the number of steps."""
    classifier, weight = linear()
    images = pictures(1)
    origin = baselines(classifier, images, "blur", 0)
    for steps in (1, 7):
        found = along(classifier, path, origin, images, torch.tensor([1]), quadrature, steps)[0]
        torch.testing.assert_close(found, (weight[1] * (images[0] - origin[0])).sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", list(PATHS))
def test_a_way_begins_and_ends_where_it_says(name):
    """`baselines(.., "blur")` is where the blur path begins; the straight one begins anywhere."""
    images = pictures(1)
    origin = baselines(awkward(), images, "blur", 0)[0]
    ends = PATHS[name](origin.double(), images[0].double(), torch.tensor([0.0, 1.0], dtype=torch.float64))
    torch.testing.assert_close(ends.float(), torch.stack([origin, images[0]]), rtol=0, atol=1e-6)


def test_coming_into_focus_sharpens_all_along_and_adds_up():
    """Xu et al. 2020: a point's height grows, in two dimensions as 1 / variance; the map sums to the difference."""
    end = torch.zeros(1, 1, 61, 61, dtype=torch.float64)
    end[..., 30, 30] = 1
    positions = torch.tensor([0.0, 0.25, 0.5], dtype=torch.float64)  # sd 6.1, 4.575, 3.05 px
    heights = PATHS["blur"](end[0], end[0], positions)[:, 0, 30, 30]
    assert (heights / heights[0]).tolist() == pytest.approx([1, 16 / 9, 4], rel=0.02)
    classifier, images = awkward(), pictures(2)
    explained = integrated_gradients(classifier, images, [0, 1], path="blur", baseline="blur", steps=400)
    assert all(abs(c.completeness) < 0.02 for c in explained.certificates)
    assert explained.certificates[0].parameters["path"] == "blur"
    straight = integrated_gradients(classifier, images, [0, 1], baseline="blur", steps=400)
    assert float((explained.map - straight.map).abs().max()) > 0.01


def test_the_choices_are_the_table():
    assert set(get_args(PathName)) == set(PATHS)


def test_a_blur_path_from_another_baseline_is_refused():
    with pytest.raises(ForetellError, match='give baseline="blur" too'):
        integrated_gradients(awkward(), pictures(1), [0], path="blur")
