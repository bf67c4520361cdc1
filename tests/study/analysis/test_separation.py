"""Separation found where it is, against exhaustive search and the definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from study.analysis.models import separation


def design(*rows: tuple[float, ...]) -> np.ndarray:
    return np.array(rows, dtype=float)


def test_overlap_is_no_separation() -> None:
    x = design((1, 0), (1, 0), (1, 1), (1, 1))
    y = np.array([True, False, True, False])
    assert separation.find(x, y, ~y) is None


def test_threshold_separates_every_row() -> None:
    x = design((1, 1), (1, 2), (1, 3), (1, 4))
    y = np.array([False, False, True, True])
    found = separation.find(x, y, ~y)
    assert found is not None
    assert found.rows.all()
    assert found.diverging.all()
    assert list(found.sign) == [-1, 1]


def test_quasi_separation_leaves_the_boundary_rows() -> None:
    # Below 2 wrong, above 2 right, at 2 both: only b0 + 2 b1 stays finite, so both coefficients diverge.
    x = design((1, 1), (1, 2), (1, 2), (1, 3))
    y = np.array([False, True, False, True])
    found = separation.find(x, y, ~y)
    assert found is not None
    assert list(found.rows) == [True, False, False, True]
    assert found.diverging.all()


def test_grouped_rows_with_both_outcomes_are_never_separated() -> None:
    x = design((1, 0), (1, 1))
    found = separation.find(x, np.array([True, True]), np.array([True, False]))
    assert found is not None
    assert list(found.rows) == [False, True]
    assert list(found.diverging) == [False, True]


def test_second_phase_directions_keep_what_the_first_made_certain() -> None:
    # Nested limits: the ray of the answer must make every separated row likely, whichever phase found it.
    rng = np.random.default_rng(4)
    for _ in range(50):
        x = np.column_stack([np.ones(8), rng.integers(-2, 3, size=(8, 2))]).astype(float)
        y = rng.random(8) < 0.5
        found = separation.find(x, y, ~y)
        if found is None:
            continue
        signed = np.where(y, 1.0, -1.0)[:, None] * x
        assert (signed[found.rows] @ found.direction > 0).all()
        assert np.abs(signed[~found.rows] @ found.direction).max(initial=0.0) < 1e-6
        far = found.far_point(x, y, np.zeros(3))
        assert (signed[found.rows] @ far >= separation.CERTAIN - 1e-6).all()


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_a_search_over_a_grid_of_directions(seed: int) -> None:
    # With entries in {-1, 0, 1} a recession direction, if any, exists among small integers.
    rng = np.random.default_rng(seed)
    x = rng.integers(-1, 2, size=(6, 2)).astype(float)
    if np.linalg.matrix_rank(x) < 2:
        return
    y = rng.random(6) < 0.5
    signed = np.where(y, 1.0, -1.0)[:, None] * x
    grid = [signed @ np.array(d) for d in itertools.product(range(-3, 4), repeat=2)]
    exists = any((g >= 0).all() and (g > 0).any() for g in grid)
    assert (separation.find(x, y, ~y) is not None) == exists
