"""The table of classes against SciPy, slow sums, and simulated intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from inquiry.debugging.classes import compute_auc, tabulate_classes


def test_the_area_is_that_of_the_mann_whitney_test_also_with_ties() -> None:
    """Against SciPy's U divided by the number of pairs. Catches ties counted as whole or not at all."""
    rng = np.random.default_rng(1)
    for decimals in (1, 8):
        positives, negatives = rng.normal(1, 1, 40).round(decimals), rng.normal(0, 1, 70).round(decimals)
        area, low, high = compute_auc(positives, negatives)
        assert area == pytest.approx(stats.mannwhitneyu(positives, negatives).statistic / (40 * 70))
        assert 0 < low < area < high < 1


def test_the_interval_is_delongs() -> None:
    """Against a slow double loop over the pairs. Catches the variance of one group only."""
    rng = np.random.default_rng(2)
    positives, negatives = rng.normal(1, 1, 12), rng.normal(0, 2, 9)
    pairs = np.array([[float(p > n) + 0.5 * float(p == n) for n in negatives] for p in positives])
    variance = pairs.mean(1).var(ddof=1) / 12 + pairs.mean(0).var(ddof=1) / 9
    area, low, high = compute_auc(positives, negatives)
    width = 2 * 1.959964 * np.sqrt(variance) / (area * (1 - area))
    assert np.log(high / (1 - high)) - np.log(low / (1 - low)) == pytest.approx(width, rel=1e-5)


def test_the_interval_covers_the_true_area() -> None:
    """Two normal distributions a distance of 1.5 apart have the area Phi(1.5 / sqrt 2), .856."""
    rng, true = np.random.default_rng(3), stats.norm.cdf(1.5 / np.sqrt(2))
    covered = 0
    for _ in range(600):
        _, low, high = compute_auc(rng.normal(1.5, 1, 25), rng.normal(0, 1, 60))
        covered += low <= true <= high
    assert 0.925 < covered / 600 < 0.985  # .95 with a standard error of .009


@pytest.mark.parametrize(("positives", "negatives"), [([3.0, 4.0, 5.0, 6.0], [1.0] * 50), ([1.0], [0.5] * 9)])
def test_perfect_order_is_no_certainty(positives: list[float], negatives: list[float]) -> None:
    """Catches an interval of no width where the sample has no pair out of order."""
    area, low, high = compute_auc(np.array(positives), np.array(negatives))
    assert (area, high) == (1.0, 1.0)
    assert low < 0.3


def test_the_table_counts_what_a_slow_count_counts() -> None:
    """Catches rows and columns of the confusion exchanged, a class that does not occur, and a wrong order."""
    rng = np.random.default_rng(4)
    probabilities = rng.dirichlet(np.ones(4), 200)
    truth = rng.integers(0, 3, 200)
    probabilities[np.arange(200), truth] += 0.4 * (truth == 1)
    table = tabulate_classes(probabilities, truth, ["ant", "bee", "cat", "dog"])
    assert sorted(table["class"]) == ["ant", "bee", "cat"]
    assert table["auc"].is_monotonic_increasing
    assert table["class"].iloc[-1] == "bee"
    for row in table.itertuples():
        k = ["ant", "bee", "cat"].index(row[1])
        mine = [i for i in range(200) if truth[i] == k]
        said = [i for i in range(200) if probabilities[i].argmax() == k]
        both = set(mine) & set(said)
        assert (row.images, row.sensitivity, row.precision) == (len(mine), len(both) / len(mine), len(both) / len(said))


def test_one_class_alone_has_no_area() -> None:
    table = tabulate_classes(np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([0, 0]), ["ant", "bee"])
    assert np.isnan(table["auc"]).all()
    assert table["sensitivity"].tolist() == [1.0]
