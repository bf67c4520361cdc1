"""Equivalence tests: whether a difference lies between bounds that were stated in advance.

Two one-sided tests (Schuirmann, 1987, doi:10.1007/BF01068419; Lakens, 2017, doi:10.1177/1948550617697177): the
difference is above the lower bound, and below the upper one. Both are significant at alpha exactly where the interval
of coverage 1 - 2 alpha lies between the bounds. Differences are those of the population scale, in percentage points of
a probability or in levels, with the degrees of freedom of the contrasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t

from core.errors import ForetellError
from study.analysis.means.adjustment import Adjustment, holm
from study.analysis.means.means import EstimatedMeans, estimate_means
from study.analysis.models import levels
from study.analysis.models.records import Floats, MixedModel
from study.analysis.models.sentences import LEVEL, coverage_text
from study.plan.equivalence import LARGEST_POINTS, Bounds, parse_bounds

EQUIVALENT, SMALL, DIFFERENT, UNDECIDED, UNTESTABLE = (
    "equivalent",
    "different and equivalent",
    "different",
    "undecided",
    "cannot be tested",
)
"""Conclusions of a test of difference with one of equivalence (Lakens, 2017, figure 1)."""


UNITS = {"binomial": " percentage points", "ordinal": " levels"}
"""Of differences between means, by family."""


@dataclass(frozen=True)
class EquivalenceTests:
    """Equivalence tests of the contrasts between estimated means.

    Attributes
    ----------
    table
        The levels after the bar, contrast; points, points_low, points_high (of other responses than binomial ones
        estimate, low, high); p_equivalence, p_equivalence_holm (within each level after the bar); p_difference, as
        corrected in the table of contrasts; conclusion.
    bounds
        In percentage points of a binomial response, in levels of an ordinal one, else in its unit.
    alpha
        Of each test; intervals cover 1 - 2 alpha.
    notes
        Sentences on what the numbers are.
    unit
        Of the bounds, after a space; empty where it is the response's own.
    """

    table: pd.DataFrame
    bounds: Bounds
    alpha: float
    notes: tuple[str, ...]
    unit: str


def read_bounds(given: str | float | Sequence[float], *, largest: float = np.inf) -> Bounds:
    """Read equivalence bounds: ``5`` or ``"-5, 10"``.

    Raises
    ------
    ForetellError
        As `study.plan.equivalence.parse_bounds`.
    """
    try:
        return parse_bounds(given, largest=largest)
    except ValueError as error:
        text = str(error)
        raise ForetellError(text[0].upper() + text[1:]) from None


def read_points(given: str) -> Bounds | None:
    """Read equivalence bounds in percentage points, as `read_bounds`; None of an empty text."""
    return read_bounds(given, largest=LARGEST_POINTS) if given.strip() else None


def compute_p(difference: Floats, se: Floats, df: Floats, bounds: Bounds) -> Floats:
    """Compute p (m,) of two one-sided tests, the larger of both; NaN where there is no standard error."""
    low, high = bounds
    tail = t(np.where(np.isnan(df), np.inf, df))
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.maximum(tail.sf((difference - low) / se), tail.cdf((difference - high) / se))
    return np.where(se > 0, p, np.nan)


def conclude(p_equivalence: Floats, p_difference: Floats, alpha: float) -> list[str]:
    """Conclude from both tests of each contrast, as corrected."""
    pairs = zip(p_equivalence, p_difference, strict=True)
    return [
        UNTESTABLE
        if np.isnan(within)
        else {(True, False): EQUIVALENT, (True, True): SMALL, (False, True): DIFFERENT}.get(
            (bool(within < alpha), bool(differs < alpha)), UNDECIDED
        )
        for within, differs in pairs
    ]


def compute_equivalence(
    frame: pd.DataFrame,
    model: MixedModel,
    made: EstimatedMeans,
    bounds: Bounds,
    *,
    contrasts: Sequence[str],
    adjust: Adjustment,
    alpha: float = LEVEL,
) -> EquivalenceTests:
    """Test whether each contrast of estimated means lies between the bounds.

    Parameters
    ----------
    made
        The means on any scale, with the ``contrasts`` and the correction ``adjust``; its p decides on a difference.
    alpha
        Of each test; intervals cover 1 - 2 alpha.
    """
    if made.contrasts.empty:
        raise ForetellError("Equivalence is tested of contrasts: ask for some, such as pairwise.")
    correction: Adjustment = "none" if adjust == "none" else "holm"
    asked = str(made.request)
    population = estimate_means(
        frame, model, asked, contrasts=contrasts, adjust=correction, scale="population", level=1 - 2 * alpha
    ).contrasts
    unit, names = (100, ["points", "points_low", "points_high"]) if model.family == "binomial" else (1, [])
    in_words = UNITS.get(model.family, "")
    if max(map(abs, bounds)) >= (largest := _find_largest(model)):
        raise ForetellError(f"Equivalence bounds must be smaller than {largest:g}{in_words}.")
    by = list(made.request.by)
    table = population[[*by, "contrast"]].copy()
    table[names or ["estimate", "low", "high"]] = unit * population[["estimate", "low", "high"]]
    numbers = (population[name].to_numpy(np.float64) for name in ("estimate", "se", "df"))
    difference, se, df = numbers
    table["p_equivalence"] = compute_p(unit * difference, unit * se, df, bounds)
    decisive = "p_equivalence"
    if correction == "holm":
        decisive = "p_equivalence_holm"
        groups = table.groupby(by, sort=False)["p_equivalence"] if by else None
        values = table["p_equivalence"]
        table[decisive] = holm(values.to_numpy()) if groups is None else groups.transform(lambda p: holm(p.to_numpy()))
    table["p_difference"] = made.contrasts["p" if adjust == "none" else f"p_{adjust}"]
    table["conclusion"] = conclude(table[decisive].to_numpy(), table["p_difference"].to_numpy(), alpha)
    return EquivalenceTests(table, bounds, alpha, _explain(bounds, alpha, correction, in_words), in_words)


def _find_largest(model: MixedModel) -> float:
    """Find the difference that no two means can have: of probabilities 100 points, of levels the whole scale."""
    if model.thresholds:
        lowest, highest = levels.find_ends(model)
        return float(highest - lowest)
    return LARGEST_POINTS if model.family == "binomial" else np.inf


def write_bounds(bounds: Bounds) -> str:
    """Write bounds: ``"5"`` of symmetric ones, else ``"−5 to 10"``."""
    low, high = bounds
    return f"{high:g}" if -low == high else f"{low:g} to {high:g}".replace("-", "−")


def _explain(bounds: Bounds, alpha: float, correction: Adjustment, unit: str) -> tuple[str, ...]:
    low, high = (f"{value:g}".replace("-", "−") for value in bounds)
    corrected = (
        "p (TOST, Holm) is corrected for the number of contrasts, and the intervals by Bonferroni's method"
        if correction == "holm"
        else "neither p nor intervals are corrected for their number"
    )
    return (
        f"Equivalent: two one-sided tests place the difference between {low} and {high}{unit}, averaged over the "
        f"random effects. The {coverage_text(2 * alpha)} intervals are those of these tests; {corrected}. Different "
        "and equivalent: a difference that is not 0 and lies within the bounds.",
    )
