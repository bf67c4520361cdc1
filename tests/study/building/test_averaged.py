"""The classifier averaged over the prior next to the plain one, on labels known by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from statsmodels.stats.contingency_tables import mcnemar

from core.teaching.kfac import KroneckerPrior
from study.building.averaged import DRAWS, FAR, AveragedAccuracy, compare

pytestmark = pytest.mark.usefixtures("shared_predictions")

CLASSES, WIDTH, IMAGES = 6, 8, 600


def prior(spread: float) -> KroneckerPrior:
    """Weights around the identity, each with a normal error of standard deviation ``spread`` of its own."""
    head = torch.eye(CLASSES, WIDTH + 1, dtype=torch.float64)
    own = torch.eye(WIDTH + 1, dtype=torch.float64), spread**2 * torch.eye(CLASSES, dtype=torch.float64)
    return KroneckerPrior(head, *own, IMAGES, (1.0, 1.0))


@pytest.fixture
def pool() -> tuple[torch.Tensor, np.ndarray]:
    draws = torch.Generator().manual_seed(0)
    truth = torch.randint(CLASSES, (IMAGES,), generator=draws)
    features = torch.eye(WIDTH)[truth] + 0.4 * torch.randn(IMAGES, WIDTH, generator=draws)
    return features, truth.numpy().astype(np.int64)


@pytest.mark.parametrize(("spread", "warned"), [(0.01, False), (30.0, True)])
def test_both_accuracies_are_those_of_a_loop_over_drawn_heads(pool, spread: float, warned: bool) -> None:
    """An own average of softmaxes over own draws has the same top-1, to the noise of 30 draws."""
    features, truth = pool
    found = compare(prior(spread), features, truth, seed=1)
    z = np.column_stack([features.double().numpy(), np.ones(IMAGES)])
    head, rng = np.eye(CLASSES, WIDTH + 1), np.random.default_rng(0)
    total = np.zeros((IMAGES, CLASSES))
    for _ in range(DRAWS):
        logits = z @ (head + spread * rng.standard_normal(head.shape)).T
        e = np.exp(logits - logits.max(1, keepdims=True))
        total += e / e.sum(1, keepdims=True)
    assert found.averaged[0] == pytest.approx((total.argmax(1) == truth).mean(), abs=0.02 if spread < 1 else 0.25)
    plain = z @ head.T
    assert found.plain[0] == pytest.approx((plain.argmax(1) == truth).mean())
    fifth = [truth[i] in np.argsort(plain[i])[-5:] for i in range(IMAGES)]
    assert found.plain[1] == pytest.approx(np.mean(fifth))
    assert ("set a larger teaching.damping in the study file" in found.text) is warned
    averaged_right = total.argmax(1) == truth
    assert found.lost - found.won == pytest.approx((found.plain[0] - found.averaged[0]) * IMAGES)
    assert found.lost <= (plain.argmax(1) == truth).sum()
    assert found.won <= IMAGES - (plain.argmax(1) == truth).sum()
    if spread < 1:
        assert found.lost + found.won == pytest.approx(((plain.argmax(1) == truth) != averaged_right).sum(), abs=6)
    assert f"{found.averaged[0]:.1%}" in found.text


def test_images_without_a_known_class_are_left_out(pool) -> None:
    features, truth = pool
    known = truth.copy()
    known[::2] = -1
    assert compare(prior(0.01), features, known, seed=1).images == IMAGES // 2
    assert compare(prior(0.01), features, np.full(IMAGES, -1), seed=1) is None


def test_an_accuracy_among_few_classes_is_called_one() -> None:
    """Every image is taken for class 2, which none shows: the accuracy given as the network's was 100% and not 0%."""
    features, truth = torch.eye(WIDTH)[:2] + 2 * torch.eye(WIDTH)[2], np.arange(2)
    z = np.column_stack([features.numpy(), np.ones(2)])
    assert not ((z @ np.eye(CLASSES, WIDTH + 1).T).argmax(1) == truth).any()
    found = compare(prior(0.01), features, truth, seed=1)
    assert found.plain[0] == 1
    assert found.text.startswith("Choosing among the classes of these 2 images only, the network is right in 100.0%")


@pytest.mark.parametrize("spread", [0.2, 1.0, 3.0])
def test_the_monte_carlo_error_is_that_of_other_draws(pool, spread: float) -> None:
    """An error that takes images for independent: all of them share the drawn heads. Oracle: 40 other seeds."""
    features, truth = pool
    repeated = [compare(prior(spread), features, truth, seed=seed) for seed in range(40)]
    expected = np.std([one.averaged[0] for one in repeated], ddof=1)
    estimated = np.sqrt(np.mean([one.error[0] ** 2 for one in repeated]))
    assert 1 / 1.6 < estimated / expected < 1.6
    share = repeated[0].averaged[0]
    independent = np.sqrt(share * (1 - share) / IMAGES)
    assert estimated < 0.6 * independent or estimated > 2 * independent
    assert f"± {100 * repeated[0].error[0]:.1f}" in repeated[0].text


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (5, 0), (6, 0), (30, 12), (30, 20), (12, 30), (7, 1), (9, 1)])
def test_the_interval_agrees_with_mcnemars_exact_test(lost: int, won: int) -> None:
    """A warning of a difference that is chance, or of a tiny one; an interval that ignores the pairing."""
    found = AveragedAccuracy((0.5, 0.5), (0.0, 0.0), (0.5, 0.5), lost, won, 100)
    gap, low, high = found.gap
    p = mcnemar([[50, lost], [won, 10]], exact=True).pvalue
    assert gap == pytest.approx((lost - won) / 100)
    assert low <= gap <= high
    assert (low > 0 or high < 0) is bool(p < 0.05)
    assert found.is_far is bool(p < 0.05 and abs(lost - won) >= 100 * FAR)
    many = AveragedAccuracy((0.5, 0.5), (0.0, 0.0), (0.5, 0.5), 49, 1, 1000)
    assert many.gap[1] > 0
    assert not many.is_far  # certain, and less than 5 points
