"""Sobol and HSIC attribution: indices with a closed form, slow estimators written out, planted evidence."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from core.attribution import METHODS
from core.attribution.perturbation.hsic import estimate_dependence
from core.attribution.perturbation.sobol import draw_designs, total_indices
from core.errors import ForetellError
from core.network.classifier import Classifier

SIDE, GRID = 12, 3
WEIGHTS = torch.tensor([[4.0, 0.0, 1.0], [0.0, 2.0, 0.0], [0.0, 0.0, -3.0]])


class Cells(nn.Module):
    """The first logit is the sum of the cells' mean brightness times `WEIGHTS`, the second its negative."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(WEIGHTS.clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bright = nn.functional.avg_pool2d(x.mean(1), SIDE // GRID)
        score = (bright * self.weights).sum((1, 2))
        return torch.stack([score, -score], 1)


@pytest.fixture
def cells() -> Classifier:
    return cells_of(Cells())


def cells_of(network: nn.Module) -> Classifier:
    def transforms(image):
        return torch.from_numpy(np.asarray(image.resize((SIDE, SIDE)), dtype=np.float32) / 255).permute(2, 0, 1)

    return Classifier(network, transforms, ["more", "less"], name="cells", mean_colour=(0, 0, 0))


def test_sobol_indices_of_the_ishigami_function() -> None:
    """Catches columns exchanged, first-order instead of total indices, and a variance of the wrong rows.

    Closed form (Ishigami & Homma 1990; a = 7, b = .1): totals .5576, .4424, .2437.
    """
    x = 2 * math.pi * draw_designs(4096, 3, seed=1).double() - math.pi
    y = x[:, 0].sin() + 7 * x[:, 1].sin() ** 2 + 0.1 * x[:, 2] ** 4 * x[:, 0].sin()
    shares, errors = total_indices(y[None], 4096)
    expected = torch.tensor([[0.5576, 0.4424, 0.2437]], dtype=torch.float64)
    assert (shares - expected).abs().max() < 0.02
    assert bool(((shares - expected).abs() < 4 * errors).all())


def test_sobol_of_a_linear_network_is_its_squared_weights(cells: Classifier) -> None:
    """Catches cells laid out in another order than the image's, and masks that dim the wrong way.

    Closed form: of independent uniform masks on an image of ones, w_i^2 / sum w^2.
    """
    images = torch.ones(1, 3, SIDE, SIDE)
    found = METHODS["sobol"](cells, images, [0], designs=256, grid=GRID, fill="black")
    expected = (WEIGHTS**2 / (WEIGHTS**2).sum()).repeat_interleave(4, 0).repeat_interleave(4, 1)
    assert found.error is not None
    assert bool(((found.map[0] - expected).abs() <= 4 * found.error[0] + 1e-4).all())
    assert float((found.map[0] - expected).abs().max()) < 0.08
    assert found.certificates[0].samples == 256 * (GRID**2 + 2)


def slow_dependence(z: np.ndarray, y: np.ndarray) -> float:
    """tr(K H L H) / n^2 by matrices, with Dirac's and the Gaussian kernel written out."""
    n = len(z)
    same = np.array([[float(a == b) for b in z] for a in z])
    distances = np.abs(y[:, None] - y)
    width = np.sort(distances[distances > 0])[(np.sum(distances > 0) - 1) // 2]
    gauss = np.exp(-(distances**2) / (2 * width**2))
    h = np.eye(n) - 1 / n
    return float(np.trace(same @ h @ gauss @ h)) / n**2


def test_hsic_is_the_criterion_less_what_chance_gives() -> None:
    """Catches a kernel that is not centred, and a level that is not chance's.

    Expected: the slow estimator, less its mean over redrawn masks.
    """
    rng = np.random.default_rng(0)
    z = (rng.random((80, 2)) < 0.5).astype(float)
    y = 2 * z[:, 0] + 0.3 * rng.normal(size=80)
    found, error = estimate_dependence(torch.from_numpy(z), torch.from_numpy(y))
    chance = [slow_dependence((rng.random(80) < 0.5).astype(float), y) for _ in range(300)]
    level, noise = np.mean(chance), np.std(chance) / math.sqrt(300)
    for k in range(2):
        assert float(found[k]) == pytest.approx(slow_dependence(z[:, k], y) - level, abs=4 * noise)
    assert float(found[0]) > 20 * float(error[1])
    assert abs(float(found[1])) < 4 * float(error[1])


def test_hsic_orders_places_by_their_influence_whatever_its_direction(cells: Classifier) -> None:
    """Catches a heatmap that shows only places in favour of the class, and one that is turned or mirrored."""
    images = torch.ones(1, 3, SIDE, SIDE)
    found = METHODS["hsic"](cells, images, [1], samples=400, grid=GRID, fill="black")
    coarse = found.map[0, 2::4, 2::4]
    assert coarse.flatten().argsort(descending=True)[:3].tolist() == [0, 8, 4]  # 4, -3 and 2
    without = coarse[WEIGHTS == 0]
    assert found.error is not None
    assert bool((without.abs() < 4 * found.error[0].max()).all())


def test_a_network_that_ignores_the_image_has_no_places() -> None:
    """Catches a division by a variance of 0, and silence about it."""
    network = Cells()
    with torch.no_grad():
        network.weights.zero_()
    cells = cells_of(network)
    images = torch.ones(1, 3, SIDE, SIDE)
    found = METHODS["sobol"](cells, images, [0], designs=4, grid=GRID)
    assert not found.map.any()
    assert "same under every mask" in found.certificates[0].warnings[0]
    assert not METHODS["hsic"](cells, images, [0], samples=40, grid=GRID).map.any()


@pytest.mark.parametrize(
    ("name", "given"), [("sobol", {"designs": 1}), ("sobol", {"grid": 0}), ("hsic", {"samples": 39})]
)
def test_settings_that_estimate_nothing_are_refused(cells: Classifier, name: str, given: dict[str, int]) -> None:
    with pytest.raises(ForetellError, match="give at least"):
        METHODS[name](cells, torch.ones(1, 3, SIDE, SIDE), [0], **given)
