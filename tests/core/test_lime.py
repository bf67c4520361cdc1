from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from core.attribution.players import Cells
from core.attribution.surrogates.lime import coalitions, lime, local_model, proximity
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import SIDE, awkward, pictures, unit


@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_the_fit_equals_a_slow_least_squares(ridge):
    """numpy's least squares on rows scaled by sqrt(weight), the penalty as rows of its own, an intercept column."""
    rng = torch.Generator().manual_seed(3)
    shown, weights = torch.rand(60, 5, generator=rng) < 0.5, torch.rand(60, generator=rng, dtype=torch.float64)
    values = torch.randn(2, 60, generator=rng, dtype=torch.float64)
    slopes, _, r2 = local_model(shown, values, weights, ridge)
    x, w = np.column_stack([shown.numpy(), np.ones(60)]), weights.numpy()
    penalty = np.column_stack([np.sqrt(ridge) * np.eye(5), np.zeros(5)])
    for b, y in enumerate(values.numpy()):
        design = np.vstack([x * np.sqrt(w)[:, None], penalty])
        expected = np.linalg.lstsq(design, np.concatenate([y * np.sqrt(w), np.zeros(5)]), rcond=None)[0]
        np.testing.assert_allclose(slopes[b].numpy(), expected[:5], rtol=0, atol=1e-10)
        around = y - np.average(y, weights=w)
        left = np.average((y - x @ expected) ** 2, weights=w)
        assert float(r2[b]) == pytest.approx(1 - left / np.average(around**2, weights=w), abs=1e-10)


def test_the_kernel_by_hand():
    """1 of 4 cells: cosine to all ones 1/2, so D = 1/2; all cells: D = 0; none: no cosine, D = 1 by continuity."""
    shown = torch.tensor([[True, False, False, False], [True] * 4, [False] * 4])
    expected = torch.tensor([np.exp(-4.0), 1.0, np.exp(-16.0)], dtype=torch.float64)
    torch.testing.assert_close(proximity(shown, 0.25), expected, rtol=1e-10, atol=0)


def test_a_linear_network_gives_w_x_minus_b_and_a_perfect_fit():
    """Closed form, without a penalty."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    classifier, image = Classifier(network, unit, name="linear"), pictures(1)
    gave = (network[1].weight[1].detach().view(3, SIDE, SIDE) * (image[0] - classifier.fill("mean"))).sum(0)
    found = lime(classifier, image, [1], grid=5, samples=100, ridge=0.0, output="logit")
    cells = Cells(SIDE, SIDE, 5)
    share = torch.zeros(25).index_add_(0, cells.index.flatten(), gave.flatten())
    torch.testing.assert_close(found.map[0], cells.spread(share[None].double())[0].float(), rtol=1e-3, atol=1e-5)
    assert found.certificates[0].parameters["r2"] == pytest.approx(1, abs=1e-6)
    assert found.certificates[0].warnings == ()
    assert found.error.max() < 1e-5


def test_maps_of_other_seeds_differ_by_the_stated_error():
    classifier, image = awkward(), pictures(1)
    runs = [
        lime(classifier, image, [1], generator=torch.Generator().manual_seed(s), grid=3, samples=300) for s in range(20)
    ]
    maps = torch.stack([run.map[0] for run in runs]).double()
    stated = torch.stack([run.error[0] for run in runs]).double().square().mean()
    assert float(maps.var(0).mean() / stated) == pytest.approx(1, abs=0.5)
    assert runs[0].certificates[0].standard_error == pytest.approx(float(runs[0].error.max()))


class Even(nn.Module):
    """|mean of the input|: no linear model describes it where the mean is as often below 0 as above."""

    def forward(self, x):
        size = x.mean((1, 2, 3)).abs()[:, None]
        return torch.cat([size, -size], 1)


def test_a_local_model_that_does_not_fit_is_warned_of():
    classifier, white = Classifier(Even(), unit, name="even"), torch.ones(1, 3, SIDE, SIDE)
    (certificate,) = lime(
        classifier, white, [0], grid=4, samples=500, kernel_width=10.0, fill="black", output="logit"
    ).certificates
    assert certificate.parameters["r2"] < 0.2
    assert "do not read the heatmap" in certificate.warnings[0]


def test_draws_are_fair_and_begin_alike():
    short, long = (torch.cat(list(coalitions(9, count, seed=4))) for count in (70, 5000))
    assert torch.equal(short, long[:70])
    assert (long.double().mean(0) - 0.5).abs().max() < 5 * 0.5 / 5000**0.5


@pytest.mark.parametrize(
    ("parameters", "says"),
    [({"samples": 97}, "at least 98"), ({"kernel_width": 0.0}, "positive width"), ({"ridge": -1.0}, "ridge")],
)
def test_bad_parameters_are_refused(parameters, says):
    with pytest.raises(ForetellError, match=says):
        lime(awkward(), pictures(1), [0], **parameters)
