"""How far heatmaps agree, against SciPy."""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import spearmanr

from core.faithfulness.agreement import correlate_all, correlate_ranks, order_by_similarity, rank_pixels
from core.types import Explanation


def explain(values: np.ndarray, zero: float = 0.0) -> Explanation:
    return Explanation(torch.from_numpy(values).float(), zero, ())


def test_the_correlation_is_scipys_also_with_ties() -> None:
    """Catches ranks that break ties by position, which a coarse heatmap is full of."""
    draws = np.random.default_rng(3)
    one, other = (draws.integers(-4, 5, (3, 6, 7)) for _ in range(2))
    found = correlate_ranks(rank_pixels(explain(one)), rank_pixels(explain(other)))
    expected = [spearmanr(abs(a).ravel(), abs(b).ravel()).statistic for a, b in zip(one, other, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_size_not_direction_is_compared_and_from_the_heatmaps_own_zero() -> None:
    """Catches a method without a sign that could never agree with one that has it."""
    values = np.arange(12.0).reshape(1, 3, 4) - 5
    one, against, shifted = explain(values), explain(-values), explain(values + 7, zero=7.0)
    for other in (against, shifted):
        assert correlate_ranks(rank_pixels(one), rank_pixels(other)).tolist() == [1.0]


def test_a_heatmap_of_one_value_agrees_with_nothing() -> None:
    """Catches a division by zero that would put NaN into an order."""
    flat, values = explain(np.ones((1, 2, 2))), explain(np.arange(4.0).reshape(1, 2, 2))
    assert correlate_ranks(rank_pixels(flat), rank_pixels(values)).tolist() == [0.0]


def test_the_matrix_of_many_heatmaps_is_that_of_each_two() -> None:
    """Catches rows and columns that are not those of the heatmaps, and a flat one that makes others NaN."""
    draws = np.random.default_rng(4).normal(size=(4, 1, 5, 5))
    draws[2] = 1
    each = [explain(values) for values in draws]
    expected = [[correlate_ranks(rank_pixels(a), rank_pixels(b))[0] for b in each] for a in each]
    np.testing.assert_allclose(correlate_all(each), expected, atol=1e-12)


def test_similar_heatmaps_are_neighbours() -> None:
    """Catches an order by number: of seven rows on a circle's arc, correlations fall with the angle between them.

    The expected order is the arc's, from either end; a missing correlation is no error.
    """
    places = np.array([3, 0, 6, 1, 5, 2, 4])
    correlations = np.cos(0.2 * (places[:, None] - places[None]))
    ordered = list(places[order_by_similarity(correlations)])
    assert ordered in ([*range(7)], [*range(6, -1, -1)])
    correlations[0, 1] = correlations[1, 0] = np.nan
    assert sorted(order_by_similarity(correlations)) == [*range(7)]
