"""Intervals of shares against Wilson's formula."""

from __future__ import annotations

import math

import pytest

from core.shares import share_of

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
