"""The classifier averaged over the prior next to the plain one, on labels known by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from statsmodels.stats.contingency_tables import mcnemar

from core.shares import compare_paired
from core.teaching.kfac import KroneckerPrior
from study.building import averaged
from study.building.averaged import DRAWS, FAR, AveragedAccuracy, compare

pytestmark = pytest.mark.usefixtures("shared_predictions")

CLASSES, WIDTH, IMAGES = 6, 8, 600


def prior(spread: float, unequal: bool = False, scale: float = 1.0) -> KroneckerPrior:
    """Weights around the identity, each with a normal error of standard deviation ``spread`` of its own.

    Equal errors leave each image's likeliest class what it is; with ``unequal`` ones, classes of larger errors win.
    """
    head = scale * torch.eye(CLASSES, WIDTH + 1, dtype=torch.float64)
    of_class = torch.linspace(0.1, 3, CLASSES, dtype=torch.float64) if unequal else torch.ones(CLASSES).double()
    own = torch.eye(WIDTH + 1, dtype=torch.float64), spread**2 * torch.diag(of_class)
    return KroneckerPrior(head, *own, IMAGES, (1.0, 1.0))


def draw_images(count: int, draws: torch.Generator) -> tuple[torch.Tensor, np.ndarray]:
    """Draw images of known classes."""
    truth = torch.randint(CLASSES, (count,), generator=draws)
    features = torch.eye(WIDTH)[truth] + 0.4 * torch.randn(count, WIDTH, generator=draws)
    return features, truth.numpy().astype(np.int64)


@pytest.fixture
def pool() -> tuple[torch.Tensor, np.ndarray]:
    return draw_images(IMAGES, torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("spread", "warned"), [(0.01, False), (30.0, True)])
def test_both_accuracies_are_those_of_a_loop_over_drawn_heads(pool, spread: float, warned: bool) -> None:
    """An own average of softmaxes over drawn heads has the same top-1, to the noise of the draws."""
    features, truth = pool
    found = compare(prior(spread), features, truth, seed=1)
    z = np.column_stack([features.double().numpy(), np.ones(IMAGES)])
    head, rng = np.eye(CLASSES, WIDTH + 1), np.random.default_rng(0)
    total = np.zeros((IMAGES, CLASSES))
    for _ in range(DRAWS):
        logits = z @ (head + spread * rng.standard_normal(head.shape)).T
        e = np.exp(logits - logits.max(1, keepdims=True))
        total += e / e.sum(1, keepdims=True)
    assert found.averaged[0] == pytest.approx((total.argmax(1) == truth).mean(), abs=0.02 if spread < 1 else 0.2)
    plain = z @ head.T
    assert found.plain[0] == pytest.approx((plain.argmax(1) == truth).mean())
    fifth = [truth[i] in np.argsort(plain[i])[-5:] for i in range(IMAGES)]
    assert found.plain[1] == pytest.approx(np.mean(fifth))
    assert ("increase the damping of the prior (now 0; try 0.01)" in found.text) is warned
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
    assert found.text.startswith("Among the classes of these 2 images, the network is correct on 100.0%")


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


def test_a_prior_that_keeps_the_predictions_is_not_warned_of(pool) -> None:
    """Thirty draws: their average was up to 10 points less accurate than the posterior predictive, and warned of."""
    features, truth = pool
    for seed in range(5):
        found = compare(prior(10.0, scale=6.0), features, truth, seed)
        assert abs(found.gap[0]) < FAR
        assert not found.warning


def test_the_interval_covers_the_true_gap_of_other_images_and_draws() -> None:
    """An interval over images alone, which covered the planted truth in 84 of 100 studies, next to a larger "±"."""
    draws, both, images_alone = torch.Generator().manual_seed(99), [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(averaged, "MOST", 8000)
        patch.setattr(averaged, "DRAWS", 3000)
        planted = compare(prior(3.0, unequal=True, scale=3.0), *draw_images(8000, draws), seed=7).gap[0]
    for seed in range(100):
        found = compare(prior(3.0, unequal=True, scale=3.0), *draw_images(400, draws), seed)
        _, low, high = found.gap
        both.append(low <= planted <= high)
        narrow = compare_paired(found.lost, found.won, found.images)
        images_alone.append(narrow.low <= planted <= narrow.high)
    assert np.mean(both) >= 0.9
    assert np.mean(images_alone) < np.mean(both)


def test_the_gap_is_the_difference_of_the_accuracies_as_written() -> None:
    """ "97.2%" and "86.9%" next to "10.4 points"; and a damping to try above the present one."""
    found = AveragedAccuracy((0.86875, 0.9), (0.0, 0.0), (0.9725, 0.99), 85, 2, 800, damping=0.02)
    assert "97.2%" in found.facts
    assert "86.9%" in found.facts
    assert "10.3 percentage points lower (95% interval" in found.facts
    assert "10.3 percentage points lower than the network's" in found.warning
    assert "(now 0.02; try 0.2)" in found.warning
