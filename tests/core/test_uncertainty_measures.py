"""What the uncertainty of predictions is measured by, in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from core.uncertainty import UNCERTAINTY_MEASURES, measures
from tests.core.test_uncertainty import seeded


def answers(*rows):
    return torch.tensor([rows], dtype=torch.float64)


def test_entropies_and_mutual_information_in_closed_form():
    """ln 2, ln 10 and 0 where an answer is even or sure; H - E[H] = .368064 for (.9, .1) against (.1, .9)."""
    assert measures.entropy(answers((1, 0), (1, 0))).value.item() == 0
    assert measures.entropy(answers((0.5, 0.5), (0.5, 0.5))).value.item() == pytest.approx(math.log(2))
    assert measures.entropy(answers([0.1] * 10, [0.1] * 10)).value.item() == pytest.approx(math.log(10))
    swinging = answers((0.9, 0.1), (0.1, 0.9))
    assert measures.mutual_information(swinging).value.item() == pytest.approx(0.368064, abs=1e-6)
    assert measures.mutual_information(answers((0.5, 0.5), (0.5, 0.5))).value.item() == pytest.approx(0, abs=1e-12)
    assert measures.mutual_information(answers((1, 0), (0, 1))).value.item() == pytest.approx(math.log(2))
    assert measures.least_confidence(answers((1, 0), (0.5, 0.5))).value.item() == pytest.approx(0.25)


def test_mutual_information_lies_between_nothing_and_the_entropy():
    p = torch.rand(50, 7, 4, generator=seeded()).softmax(-1)
    information, whole = measures.mutual_information(p).value, measures.entropy(p).value
    assert bool(((information >= 0) & (information <= whole)).all())


def test_variation_ratio_draws_labels():
    """.5 - E|Bin(20, .5) - 10| / 20 = .4119 for 20 even answers: the largest of each would give 0."""
    even = torch.full((1, 20, 2), 0.5)
    ratios = [measures.variation_ratio(even, generator=seeded(seed)).value.item() for seed in range(3000)]
    assert np.mean(ratios) == pytest.approx(0.4119, abs=4 * np.std(ratios) / 3000**0.5)
    assert measures.variation_ratio(answers((1, 0), (0, 1))).value.item() == 0.5
    assert measures.variation_ratio(torch.eye(10)[None]).value.item() == pytest.approx(0.9)


@pytest.mark.parametrize("name", ["least_confidence", "entropy", "mutual_information"])
def test_standard_errors_are_the_spread_of_repetitions(name):
    """The mean error of 400 sets of 60 answers against the standard deviation of their 400 values."""
    logits = torch.randn(400, 60, 3, generator=seeded()) + torch.tensor([1.0, 0.0, 0.0])
    estimate = UNCERTAINTY_MEASURES[name](logits.softmax(-1))
    assert estimate.error.mean().item() == pytest.approx(estimate.value.std().item(), rel=0.12)


def test_predictive_log_likelihood():
    """-1.485158 for f = {0, 2}, y = 0, tau = 1; for D outputs the log of the mean product of normal densities."""
    one = measures.regression_log_likelihood(torch.tensor([[[0.0], [2.0]]]), torch.zeros(1, 1), 1.0)
    assert one.item() == pytest.approx(-1.485158, abs=1e-6)
    outputs, truth = torch.randn(2, 5, 3, generator=seeded()), torch.randn(2, 3, generator=seeded(2))
    density = torch.distributions.Normal(outputs.double(), 4.0**-0.5).log_prob(truth[:, None].double()).sum(-1).exp()
    found = measures.regression_log_likelihood(outputs, truth, 4.0)
    torch.testing.assert_close(found, density.mean(1).log(), rtol=1e-10, atol=1e-10)
    known = measures.log_likelihood(answers((0.9, 0.1), (0.5, 0.5)), torch.tensor([1]))
    assert known.item() == pytest.approx(math.log(0.3))


def test_model_precision():
    """tau = .7 * .49 / (2 * 1000 * 1e-4) = 1.715."""
    assert measures.model_precision(0.3, 0.7, 1000, 1e-4) == pytest.approx(1.715)
