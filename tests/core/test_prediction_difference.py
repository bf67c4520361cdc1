from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from core.attribution.perturbation.occlusion import Windows
from core.attribution.perturbation.prediction_difference import (
    NUGGET,
    ImageWindow,
    Odds,
    Texture,
    parts,
    prediction_difference,
)
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import stream
from tests.core.networks import SIDE, awkward, pictures, unit


def small_picture(channels: int = 2) -> torch.Tensor:
    """(C, 5, 6) with values that hang together across places and channels."""
    noise = torch.randn(channels, 5, 6, generator=torch.Generator().manual_seed(2))
    return (noise.cumsum(2) + noise.sum(0)).float()


def slow_covariance(image: torch.Tensor) -> np.ndarray:
    """Covariances (C H W, C H W) of all values, pair by pair: the mean product at that lag over H W, and nugget."""
    z = image.double().numpy()
    z = z - z.mean((1, 2), keepdims=True)
    channels, height, width = z.shape
    points = [(c, r, s) for c in range(channels) for r in range(height) for s in range(width)]
    found = np.zeros((len(points), len(points)))
    for i, (c, r, s) in enumerate(points):
        for j, (d, t, u) in enumerate(points):
            down, right = t - r, u - s
            found[i, j] = sum(
                z[c, a, b] * z[d, a + down, b + right]
                for a in range(height)
                for b in range(width)
                if 0 <= a + down < height and 0 <= b + right < width
            ) / (height * width)
    return found + np.diag(NUGGET * found.diagonal())


def conditional(image: torch.Tensor, part: ImageWindow) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the window given its surroundings, from the inverse covariance (precision) of both."""
    window = np.zeros(image.shape, bool)
    window[:, part.rows, part.columns] = True
    outer = np.zeros(image.shape, bool)
    outer[:, *part.outer] = True
    w, around = window.ravel().nonzero()[0], (outer & ~window).ravel().nonzero()[0]
    both = np.concatenate([w, around])
    precision = np.linalg.inv(slow_covariance(image)[np.ix_(both, both)])
    n = len(w)
    x, mean = image.double().numpy(), image.double().numpy().mean((1, 2), keepdims=True)
    off = (x - mean).ravel()[around]
    cov = np.linalg.inv(precision[:n, :n])
    return np.broadcast_to(mean, x.shape).ravel()[w] - cov @ precision[:n, n:] @ off, cov


@pytest.mark.parametrize(("rows", "columns"), [((1, 3), (2, 4)), ((0, 2), (3, 6)), ((0, 5), (0, 3))])
def test_the_conditional_mean_equals_that_of_the_precision_matrix(rows, columns):
    """A field that is the mean colour everywhere is carried to the conditional mean; at the edge too."""
    image = small_picture()
    part, texture = ImageWindow(slice(*rows), slice(*columns), 5, 6, 1), Texture(image)
    found = texture.condition_on_surroundings(texture.mean.expand(1, -1, 5, 6), part)
    expected, _ = conditional(image, part)
    np.testing.assert_allclose(found.flatten().numpy(), expected, rtol=0, atol=1e-8)


def test_draws_have_the_conditional_covariance():
    """4,800 draws against the closed form, within 5 standard errors of each covariance."""
    image = small_picture()
    part, texture = ImageWindow(slice(1, 3), slice(2, 4), 5, 6, 1), Texture(image)
    draws = torch.cat([texture.condition_on_surroundings(texture.sample(16, stream(3, b)), part) for b in range(300)])
    mean, cov = conditional(image, part)
    spread = np.sqrt(np.outer(cov.diagonal(), cov.diagonal()) + cov**2) / math.sqrt(4800)
    found = np.cov(draws.flatten(1).numpy().T)
    assert np.abs((found - cov) / spread).max() < 5
    error = np.sqrt(cov.diagonal() / 4800)
    assert np.abs((draws.flatten(1).mean(0).numpy() - mean) / error).max() < 5
    # Not knowing the surroundings would show: the window varies far less than a window anywhere.
    assert cov.diagonal().max() < 0.9 * slow_covariance(image).diagonal().max()


class Straight(nn.Module):
    """Softmax probabilities that are linear in the input: 1/2 + w . x and the rest."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(4)
        self.weight = nn.Parameter(2e-3 * torch.randn(3 * SIDE * SIDE, generator=generator))

    def forward(self, x):
        p = 0.5 + x.flatten(1) @ self.weight
        return torch.stack([p, 1 - p], 1).log()


def test_a_linear_probability_has_a_closed_form():
    """E p(c | x without w) = 1/2 + w . E[x | surroundings]; three windows overlap a pixel. One far value makes the
    picture's own range so wide that nothing drawn leaves it."""
    image = pictures(1)
    image[0, :, 0, 0] = torch.tensor([30.0, -30.0, 25.0])
    image[0, :, -1, -1] = torch.tensor([-30.0, 30.0, -25.0])
    classifier = Classifier(Straight(), unit, name="straight")
    found = prediction_difference(classifier, image, [0], window=4, stride=2, samples=60, trained_on=100)
    windows, texture = parts(Windows.of(SIDE, SIDE, 4, 2), 2), Texture(image[0])
    with classifier.exclusive() as module:
        weight = module.weight.detach().double().view(3, SIDE, SIDE)
    total, count = torch.zeros(SIDE, SIDE, dtype=torch.float64), torch.zeros(SIDE, SIDE)
    for part in windows:
        x = image[0].double()
        whole = float(0.5 + (weight * x).sum())
        x[:, part.rows, part.columns] = texture.condition_on_surroundings(texture.mean.expand(1, -1, SIDE, SIDE), part)[
            0
        ]
        without = float(0.5 + (weight * x).sum())
        one, other = ((100 * p + 1) / 102 for p in (whole, without))
        total[part.rows, part.columns] += math.log2(one / (1 - one)) - math.log2(other / (1 - other))
        count[part.rows, part.columns] += 1
    z = (found.map[0].double() - total / count) / found.error[0].double()
    assert z.square().mean().sqrt() < 1.6
    assert (total / count).abs().max() > 5 * found.error.max()


def test_laplaces_correction_by_hand():
    """N = 9 and K = 3: p = 1 counts as 10/12, p = 0 as 1/12, p = 1/3 stays."""
    bits = Odds(9, 3).bits(torch.tensor([1.0, 0.0, 1 / 3], dtype=torch.float64))
    expected = torch.tensor([math.log2(5), -math.log2(11), -1.0], dtype=torch.float64)
    torch.testing.assert_close(bits, expected, rtol=0, atol=1e-12)
    p = torch.tensor([0.2], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(Odds(9, 3).bits(p), p)
    torch.testing.assert_close(Odds(9, 3).slope(p.detach()), slope, rtol=1e-12, atol=0)


def test_maps_of_other_seeds_differ_by_the_stated_error():
    classifier, image = awkward(), pictures(1)
    runs = [
        prediction_difference(classifier, image, [1], generator=torch.Generator().manual_seed(s), window=4, samples=40)
        for s in range(16)
    ]
    maps = torch.stack([run.map[0] for run in runs]).double()
    stated = torch.stack([run.error[0] for run in runs]).double().square().mean()
    assert float(maps.var(0).mean() / stated) == pytest.approx(1, abs=0.5)
    assert runs[0].certificates[0].standard_error == pytest.approx(float(runs[0].error.max()))


def test_a_classifier_that_does_not_look_has_no_evidence():
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    nn.init.zeros_(network[1].weight)
    found = prediction_difference(Classifier(network, unit, name="blind"), pictures(1), [1], samples=20)
    assert found.map.abs().max() < 1e-6
    assert found.error.max() < 1e-6


def test_a_image_of_one_colour_and_a_window_without_surroundings_are_drawn():
    classifier = awkward()
    flat = prediction_difference(classifier, torch.full((1, 3, SIDE, SIDE), 0.3), [0], window=3, stride=3)
    assert flat.map.abs().max() < 1e-3  # What is around says all.
    everything = prediction_difference(classifier, pictures(1), [0], window=SIDE)
    assert everything.map.std() < 1e-6
    assert everything.map.abs().max() > 1e-3


def test_more_samples_go_on_from_the_first():
    """17 samples need a second block, whose stream is its own."""
    texture, part = Texture(small_picture()), ImageWindow(slice(0, 2), slice(0, 2), 5, 6, 1)
    one, two = (texture.condition_on_surroundings(texture.sample(16, stream(1, b)), part) for b in range(2))
    assert (one - two).abs().min() > 1e-9
    found = prediction_difference(awkward(), pictures(1), [0], window=6, samples=17)
    assert found.certificates[0].samples == 17


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"samples": 1}, "at least 2"),
        ({"context": 0}, "1 px of context"),
        ({"trained_on": 0}, "1 image"),
        ({"window": 65}, "at most 64"),
        ({"window": 2, "stride": 3}, "unseen"),
    ],
)
def test_bad_parameters_are_refused(parameters, says):
    with pytest.raises(ForetellError, match=says):
        prediction_difference(awkward(), pictures(1), [0], **parameters)
