"""Intervals of shares against Wilson's formula, and of paired differences against simulated counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar

from core.shares import compare_paired, share_of

Z = 1.959963984540054


@pytest.mark.parametrize(("chosen", "among"), [(0, 10), (10, 10), (3, 8), (512, 640)])
def test_the_limits_solve_wilsons_equation(chosen, among):
    """Catches another interval than Wilson's: at its limits p, |share - p| is z sqrt(p (1 - p) / n)."""
    share, low, high = share_of(chosen, among)
    assert share == chosen / among
    for limit in (low, high):
        assert abs(share - limit) == pytest.approx(Z * math.sqrt(limit * (1 - limit) / among), abs=1e-9)
    assert low < high
    assert share_of(0, 10).high == pytest.approx(Z**2 / (10 + Z**2), abs=1e-9)


@pytest.mark.parametrize("among", [60, 800])
@pytest.mark.parametrize("differing", [(0.02, 0.02), (0.1, 0.0), (0.05, 0.01), (0.3, 0.05)])
def test_the_limits_of_a_paired_difference_cover_it_as_often_as_they_say(among, differing):
    """2,000 simulated tables. Catches limits given the number that differs: they cover as little as a third."""
    one, other = differing
    drawn = np.random.default_rng(0).multinomial(among, [one, other, 1 - one - other], size=2000)
    tables, counts = np.unique(drawn[:, :2], axis=0, return_counts=True)
    covered = [
        limits[1] <= one - other <= limits[2] for limits in (compare_paired(*map(int, t), among) for t in tables)
    ]
    assert counts[covered].sum() / 2000 > 0.93


@pytest.mark.parametrize(("won", "lost", "among"), [(0, 0, 20), (0, 4, 200), (30, 12, 60), (7, 7, 100)])
def test_a_paired_difference_is_tested_by_mcnemars_exact_test(won, lost, among):
    """Against statsmodels. Catches a difference of the other sign, and limits of nothing where nothing differs."""
    found = compare_paired(won, lost, among)
    assert found.value == (won - lost) / among
    assert found.low < found.value < found.high
    assert found.p_value == pytest.approx(mcnemar([[0, won], [lost, among - won - lost]], exact=True).pvalue)
    flipped = compare_paired(lost, won, among)
    assert (flipped.low, flipped.high) == pytest.approx((-found.high, -found.low))
