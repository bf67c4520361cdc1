"""Which combinations of coefficients the data determine: those in the row space of the design.

A combination w'b can be estimated exactly if it is orthogonal to every direction along which the coefficients can move
without a change in any prediction (Searle, 1971, ch. 5; Lenth's emmeans asks the same). Columns that were left out
because they repeat others give such directions, and so do responses that a model makes certain: they drop out of the
likelihood, and the others do not determine every coefficient. The difference of two infinite coefficients may well be
finite.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from study.analysis.models.records import Floats, MixedModel

Mask = NDArray[np.bool_]
TOLERANCE = 1e-7
"""Relative size below which a product of weights and a direction is 0."""


def find_independent_columns(design: Floats) -> Mask:
    """Tell which columns (p,) of a design (n, p) no columns before them determine."""
    kept, basis = np.zeros(design.shape[1], dtype=bool), np.zeros((len(design), 0))
    for k, column in enumerate(design.T):
        rest = column - basis @ (basis.T @ column)
        rest = rest - basis @ (basis.T @ rest)  # twice: what rounding left of the first
        size = float(np.linalg.norm(rest))
        kept[k] = size > TOLERANCE * float(np.linalg.norm(column))
        if kept[k]:
            basis = np.column_stack([basis, rest / size])
    return kept


def find_aliased_directions(design: Floats, kept: Mask) -> Floats:
    """Return (p, k) directions that change no row of a design: one for each column that the others determine.

    Parameters
    ----------
    design
        (n, p) columns of the fixed effects.
    kept
        (p,) which of them were estimated, of full rank.

    Returns
    -------
    numpy.ndarray
        Over the columns in the order of `MixedModel.design_with_dropped`: the kept ones, then the others.
    """
    inner, outer = design[:, kept], design[:, ~kept]
    weights = np.linalg.lstsq(inner, outer, rcond=None)[0]
    size = np.linalg.norm(inner, axis=0)[:, None] / np.maximum(np.linalg.norm(outer, axis=0), 1e-300)
    weights = np.where(np.abs(weights) * size > 1e-9, weights, 0.0)
    return np.vstack([-weights, np.eye(outer.shape[1])])


def find_equal_columns(aliased: Floats, names: Sequence[str]) -> dict[str, list[str]]:
    """Find the kept columns that dropped ones repeat, from their directions; ``names`` are of both, in that order."""
    equal: dict[str, list[str]] = {}
    dropped = names[len(names) - aliased.shape[1] :]
    for name, weights in zip(dropped, -aliased[: len(names) - len(dropped)].T, strict=True):
        places = np.flatnonzero(weights)
        if len(places) == 1 and abs(weights[places[0]] - 1) < TOLERANCE:
            equal.setdefault(names[places[0]], []).append(name)
    return equal


def join_directions(aliased: Floats, free: Floats) -> Floats:
    """Return aliased directions with those of the kept columns that separation leaves open."""
    clean = np.where(np.abs(free) > 1e-9, free, 0.0)
    return np.hstack([aliased, np.vstack([clean, np.zeros((len(aliased) - len(free), free.shape[1]))])])


def is_orthogonal(weights: Floats, directions: Floats) -> Mask:
    """Tell for each of k combinations (k, p) whether it is orthogonal to all directions (p, d)."""
    if not directions.size:
        return np.asarray(~np.isnan(weights).any(axis=1), dtype=bool)
    largest = np.abs(weights) @ np.abs(directions)
    return np.asarray((np.abs(weights @ directions) <= TOLERANCE * largest).all(axis=1), dtype=bool)


def has_value(weights: Floats, model: MixedModel) -> Mask:
    """Tell which combinations have a value, be it infinite, whichever of the aliased columns was left out."""
    return is_orthogonal(weights, model.aliased)


def is_estimable(weights: Floats, model: MixedModel) -> Mask:
    """Tell which combinations have a finite estimate and a standard error."""
    return is_orthogonal(weights, model.undetermined)


def estimate_combinations(weights: Floats, model: MixedModel) -> tuple[Floats, Floats]:
    """Estimate k combinations of coefficients with their standard errors (k,); NaN where the data do not determine one.

    Parameters
    ----------
    weights
        (k, p) over the columns of `MixedModel.design_with_dropped`.
    """
    known, inner = is_estimable(weights, model), weights[:, : len(model.coefficients)]
    estimates = inner @ np.array([c.estimate for c in model.coefficients])
    return np.where(known, estimates, np.nan), np.where(known, compute_standard_errors(inner, model), np.nan)


def compute_standard_errors(gradient: Floats, model: MixedModel) -> Floats:
    """Compute standard errors (k,) of k functions from their derivatives by the coefficients (k, p)."""
    return apply_delta_method(gradient, model.covariance)


def apply_delta_method(gradient: Floats, covariance: Floats) -> Floats:
    """Compute standard errors (k,) of k functions from their derivatives (k, p) by p estimates with a covariance."""
    variance = np.einsum("ki,ij,kj->k", gradient, covariance, gradient)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))
