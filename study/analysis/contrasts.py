"""Contrasts between cells of the design, tested on the link scale and corrected for their number by Holm's method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from core.errors import ForetellError
from study.analysis import marginal
from study.analysis.records import Floats, MixedModel
from study.analysis.responses import CONDITION_OF_FACTORS
from study.analysis.separation import Mask
from study.bundle import TRIAL_TYPES

FACTORS = {name: dict(zip(("saliency", "examples"), pair, strict=True)) for pair, name in CONDITION_OF_FACTORS.items()}
"""The two factors' values of each condition."""


@dataclass(frozen=True)
class Contrast:
    """One condition against another.

    Attributes
    ----------
    more, less
        Names of conditions: `more` minus `less` is estimated.
    trial_types
        Averaged over these.
    """

    more: str
    less: str
    trial_types: tuple[str, ...] = TRIAL_TYPES

    @property
    def name(self) -> str:
        """The contrast's name: ``"saliency - none, std_correct"``."""
        kinds = "" if self.trial_types == TRIAL_TYPES else f", {' and '.join(self.trial_types)}"
        return f"{self.more} - {self.less}{kinds}"


DEFAULT = tuple(Contrast(more, "none", (kind,)) for kind in TRIAL_TYPES for more in ("saliency", "examples", "both"))
"""The contrasts of a study without a plan: each explanation against none, for each trial type."""


def table(
    model: MixedModel,
    contrasts: Sequence[Contrast] = DEFAULT,
    *,
    level: float = 0.95,
    cells: Mapping[str, Mapping[str, Any]] = FACTORS,
) -> pd.DataFrame:
    """Estimate each contrast with its interval and test.

    Parameters
    ----------
    cells
        The columns of the design, besides the trial type, that make each condition.

    Returns
    -------
    pandas.DataFrame
        contrast, estimate (link scale), se, low, high (unadjusted), z, p, p_holm (over those that have a p); of a
        binomial model also accuracy_less, accuracy_more (probabilities, averaged over participants, categories and
        trial types), points (their difference in percentage points), points_low, points_high (delta method). A
        contrast that depends on a coefficient without a finite estimate has no interval and no p.

    Raises
    ------
    ForetellError
        An unknown condition or trial type.
    """
    made = estimate(model, contrasts, level=level, cells=cells)
    half = float(_tail(model).ppf((1 + level) / 2))
    return made.join(_points(model, contrasts, cells, half, made["se"].notna().to_numpy()))


def estimate(
    model: MixedModel,
    contrasts: Sequence[Contrast],
    *,
    level: float = 0.95,
    cells: Mapping[str, Mapping[str, Any]] = FACTORS,
) -> pd.DataFrame:
    """Estimate each contrast on the link scale alone: `table` as far as ``p_holm``."""
    weights = np.stack([_weights(contrast, model, cells) for contrast in contrasts])
    finite = np.array([c.term not in model.diverging for c in model.coefficients])
    known = ~np.any(weights[:, ~finite] != 0, axis=1) & ~np.isnan(weights).any(axis=1)
    inner = np.nan_to_num(weights[:, finite])
    estimate = inner @ np.array([c.estimate for c in model.coefficients])[finite]
    se = np.sqrt(np.einsum("ki,ij,kj->k", inner, model.covariance[np.ix_(finite, finite)], inner))
    estimate, se = np.where(known, estimate, np.nan), np.where(known, se, np.nan)
    tail = _tail(model)
    half = tail.ppf((1 + level) / 2) * se
    p = 2 * tail.sf(np.abs(estimate / se))
    rows = {
        "contrast": [contrast.name for contrast in contrasts],
        "estimate": estimate,
        "se": se,
        "low": estimate - half,
        "high": estimate + half,
        "z": estimate / se,
        "p": p,
        "p_holm": holm(p),
    }
    return pd.DataFrame(rows)


def _tail(model: MixedModel) -> Any:
    """Return the distribution of the test statistics."""
    dfs = [c.df for c in model.coefficients if c.df is not None]
    return t(min(dfs)) if dfs else norm  # of linear models the fewest degrees of freedom: the careful ones


def _points(
    model: MixedModel, contrasts: Sequence[Contrast], cells: Mapping[str, Mapping[str, Any]], half: float, known: Mask
) -> pd.DataFrame:
    """Express the contrasts in percentage points; `half` standard errors on each side."""
    if model.family != "binomial":
        return pd.DataFrame(index=range(len(contrasts)))
    rows = []
    for contrast, has_interval in zip(contrasts, known, strict=True):
        more, less = (_population(model, cells[name], contrast.trial_types) for name in (contrast.more, contrast.less))
        se = float(marginal.standard_errors((more[1] - less[1])[None, :], model)[0]) if has_interval else np.nan
        points = more[0] - less[0]
        rows.append((less[0], more[0], 100 * points, 100 * (points - half * se), 100 * (points + half * se)))
    return pd.DataFrame(rows, columns=["accuracy_less", "accuracy_more", "points", "points_low", "points_high"])


def _population(model: MixedModel, factors: Mapping[str, Any], kinds: Sequence[str]) -> tuple[float, Floats]:
    """Average a condition's probability over trial types, with its derivative; NaN where a column was dropped."""
    if any(_has_dropped_terms(model, kind, factors) for kind in kinds):
        return np.nan, np.full(len(model.coefficients), np.nan)
    parts = [marginal.population(_cell(kind, factors), model) for kind in kinds]
    return float(np.mean([p[0] for p, _ in parts])), np.mean([gradient[0] for _, gradient in parts], axis=0)


def holm(p: Floats) -> Floats:
    """Correct p-values for their number (Holm, 1979); NaN remains and does not count.

    Not by statsmodels: its correction collects garbage, 0.2 s in a process that holds pages and networks.
    """
    tested = np.flatnonzero(~np.isnan(p))
    ordered = tested[np.argsort(p[tested], kind="stable")]
    adjusted = np.full(len(p), np.nan)
    adjusted[ordered] = np.minimum(np.maximum.accumulate(p[ordered] * np.arange(len(ordered), 0, -1)), 1.0)
    return adjusted


def _weights(contrast: Contrast, model: MixedModel, cells: Mapping[str, Mapping[str, Any]]) -> Floats:
    for name in (contrast.more, contrast.less):
        if name not in cells:
            raise ForetellError(f"There is no condition {name!r} to contrast; there are {', '.join(cells)}.")
    for kind in contrast.trial_types:
        if kind not in TRIAL_TYPES:
            raise ForetellError(f"There is no trial type {kind!r} to contrast; there are {', '.join(TRIAL_TYPES)}.")
    kinds = [
        _row(model, kind, cells[contrast.more]) - _row(model, kind, cells[contrast.less])
        for kind in contrast.trial_types
    ]
    return np.asarray(np.mean(kinds, axis=0), dtype=np.float64)


def _row(model: MixedModel, kind: str, factors: Mapping[str, Any]) -> Floats:
    """Return the design row of a cell; NaN if a column that it needs was dropped, because its cell is absent."""
    lost = _has_dropped_terms(model, kind, factors)
    return np.full(len(model.coefficients), np.nan) if lost else model.design(_cell(kind, factors))[0]


def _cell(kind: str, factors: Mapping[str, Any]) -> pd.DataFrame:
    return pd.DataFrame({"trial_type": pd.Categorical([kind], categories=list(TRIAL_TYPES)), **factors})


def _has_dropped_terms(model: MixedModel, kind: str, factors: Mapping[str, Any]) -> bool:
    active = {f"trial_type{kind}", *(_part(name, value) for name, value in factors.items())}
    return any(set(term.split(":")) <= active for term in model.dropped)


def _part(name: str, value: Any) -> str:
    """Return the part of a term that is 1 in a cell: ``saliency`` of a factor, ``conditionboth`` of a name."""
    if isinstance(value, int):
        return name if value else ""
    return f"{name}{value[0]}"
