"""Estimated marginal means with their intervals, and contrasts between them with simultaneous ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t

from core.errors import ForetellError
from study.analysis.means import adjustment
from study.analysis.means.adjustment import Adjustment
from study.analysis.means.grid import Grid, build_grid, find_averaged, find_interactions, label
from study.analysis.means.request import PAIRWISE, MeansRequest, list_contrasts, parse_request
from study.analysis.models import denominators, estimability, levels, linear, marginal
from study.analysis.models.marginal import Scale
from study.analysis.models.records import Floats, MixedModel

RATIOS = {"logit": "odds_ratio", "log": "rate_ratio"}
"""What a difference on the link scale is the logarithm of."""
QUANTITIES = {"binomial": "probabilities", "ordinal": "mean levels", "poisson": "rates"}
"""What means off the link scale are, by family."""


@dataclass(frozen=True)
class EstimatedMeans:
    """Estimated marginal means.

    Attributes
    ----------
    means
        The factors' levels, estimate, se, df (missing: infinite), low, high.
    contrasts
        The levels of the factors after the bar, contrast, estimate, se, df, low, high (corrected for the number of
        contrasts), z (of a t test too), p (uncorrected), p_holm, p_tukey or p_mvt; of a logit or log link on the link
        scale also odds_ratio or rate_ratio with its limits. Missing where the data do not determine it.
    notes
        Sentences on what the numbers are.
    """

    request: MeansRequest
    scale: Scale
    means: pd.DataFrame
    contrasts: pd.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Means:
    """Means of one scale: (k,) values, derivatives by the estimates, on the link scale (k, p + d) weights.

    The derivatives are (k, p) by the coefficients; of mean levels by the thresholds too, and so their covariance.
    """

    values: Floats
    gradient: Floats
    weights: Floats | None
    covariance: Floats

    def compute_standard_errors(self, gradient: Floats) -> Floats:
        """Compute standard errors (m,) of m functions from their derivatives."""
        return estimability.apply_delta_method(gradient, self.covariance)

    def combine(self, combinations: Floats, model: MixedModel) -> tuple[Floats, Floats]:
        """Return combinations (m, k) of means (m,), and their derivatives (m, p); missing if not determined."""
        if self.weights is not None:  # a difference may be determined though neither mean is
            weights = combinations @ self.weights
            inner = weights[:, : len(model.coefficients)]
            missing = ~estimability.is_estimable(weights, model)
            value = inner @ np.array([c.estimate for c in model.coefficients])
        else:
            used = combinations != 0
            missing = (used & np.isnan(self.values)).any(axis=1)
            value = combinations @ np.nan_to_num(self.values)
            inner = combinations @ np.nan_to_num(self.gradient)
            inner = np.where((used @ np.isnan(self.gradient).any(axis=1))[:, None], np.nan, inner)
        return np.where(missing, np.nan, value), np.where(missing[:, None], np.nan, inner)


def estimate_means(
    frame: pd.DataFrame,
    model: MixedModel,
    asked: str,
    *,
    contrasts: Sequence[str] = (PAIRWISE,),
    adjust: Adjustment = "holm",
    scale: Scale = "link",
    level: float = 0.95,
) -> EstimatedMeans:
    """Estimate marginal means of factors, and contrasts between them.

    Parameters
    ----------
    frame
        The rows that the model was fitted to.
    asked
        ``"a"``, ``"a * b"`` (each combination), ``"a | b"`` (a within each level of b). A factor is a column of text,
        or of numbers with two values.
    contrasts
        ``"pairwise"``, ``"reference"`` (each against the first), ``"b - a"``, or weights ``"b=1, a=-1/2, c=-1/2"``;
        none if empty.
    adjust
        Correction of the contrasts within each level after the bar: ``"none"``, ``"holm"`` (intervals: Bonferroni),
        ``"tukey"`` (all pairs only), ``"mvt"`` (the distribution of the largest |t|, single-step). Each contrast has
        its own degrees of freedom (Satterthwaite); only ``"mvt"`` takes the fewest of the contrasts that it corrects.
    scale
        ``"link"`` (log-odds), ``"response"`` (probabilities at random effects of 0) or ``"population"`` (probabilities
        averaged over the random effects); of an ordinal model mean levels in their place.

    Raises
    ------
    ForetellError
        An unknown factor, level or choice; a continuous predictor; weights that do not sum to zero; means that the data
        do not determine.
    """
    request = parse_request(asked)
    _check_choices(contrasts, adjust, scale)
    grid = build_grid(frame, model)
    grid.check(request.names)
    link = marginal.get_link(model)
    cells = grid.combine(request.names)
    made = _average(grid, model, scale, cells)
    if np.isnan(made.values).all():
        raise ForetellError(
            f"The data determine none of the means {str(request)!r}: a combination of levels has no rows, or all its "
            "responses are the same. Average over fewer factors ('a | b', 'a * b'), or leave an interaction out of the "
            "formula."
        )
    means = pd.DataFrame(cells).join(_describe_means(made, frame, model, link, scale, level))
    parts = [
        _contrast(made, frame, model, cells, request, within, contrasts, adjust, level)
        for within in grid.combine(request.by)
    ]
    compared = pd.concat(parts, ignore_index=True)
    if scale == "link" and link in RATIOS:
        compared = compared.join(_exponentiate(compared, RATIOS[link]))
    notes = (*_explain(grid, request, model, scale), *_explain_tests(means, compared, request, adjust))
    return EstimatedMeans(request, scale, means, compared, (*notes, *_name_missing(cells, made)))


def _check_choices(contrasts: Sequence[str], adjust: str, scale: str) -> None:
    if adjust not in adjustment.ADJUSTMENTS:
        raise ForetellError(f"There is no correction {adjust!r}; choose {', '.join(adjustment.ADJUSTMENTS)}.")
    if scale not in marginal.SCALES:
        raise ForetellError(f"There is no scale {scale!r}; choose {', '.join(marginal.SCALES)}.")
    if adjust == "tukey" and list(contrasts) != [PAIRWISE]:
        raise ForetellError("Tukey's method corrects all pairs: ask for pairwise contrasts, or correct by mvt or holm.")


def _average(grid: Grid, model: MixedModel, scale: Scale, cells: Sequence[dict[str, object]]) -> _Means:
    """Average the grid's predictions over the factors that are not asked for."""
    wanted = [np.all([grid.cells[name] == value for name, value in cell.items()], axis=0) for cell in cells]
    share = np.array([rows / rows.sum() for rows in wanted])
    if scale == "link":
        weights = share @ model.design_with_dropped(grid.cells, grid.formula)
        values, _ = estimability.estimate_combinations(weights, model)
        gradient = weights[:, : len(model.coefficients)]
        return _Means(values, np.where(np.isnan(values)[:, None], np.nan, gradient), weights, model.covariance)
    values, gradient = predict(grid.cells, grid.formula, model, scale)
    return _Means(
        np.array([values[rows].mean() for rows in wanted]),
        np.array([gradient[rows].mean(axis=0) for rows in wanted]),
        None,
        choose_covariance(model, scale),
    )


def predict(data: pd.DataFrame, formula: str, model: MixedModel, scale: Scale) -> tuple[Floats, Floats]:
    """Predict rows (n,) of prepared data: mean levels off the link scale of an ordinal model, as of `levels`.

    With the derivatives by the estimates whose covariance `choose_covariance` returns.
    """
    if model.thresholds and scale != "link":
        return levels.predict_prepared(data, formula, model, scale)
    return marginal.predict_prepared(data, formula, model, scale)


def choose_covariance(model: MixedModel, scale: Scale) -> Floats:
    """Return the covariance of the coefficients, or off the link scale of an ordinal model with the thresholds."""
    return model.joint_covariance if model.thresholds and scale != "link" else model.covariance


def _describe_means(
    made: _Means, frame: pd.DataFrame, model: MixedModel, link: str, scale: Scale, level: float
) -> pd.DataFrame:
    """Tabulate means; off the link scale the interval is that of the mean's link value, so it stays within bounds."""
    se = made.compute_standard_errors(made.gradient)
    df = find_df(frame, model, made.gradient)
    half = t(df).ppf((1 + level) / 2) * se
    low, high = made.values - half, made.values + half
    if scale != "link" and model.thresholds:
        low, high = levels.find_limits(made.values, half, model)
    elif scale != "link":
        middle, slope = marginal.transform(link, made.values)
        low, high = (marginal.invert(link, middle + side * slope * half) for side in (-1, 1))
    return pd.DataFrame({"estimate": made.values, "se": se, "df": _hide_infinite(df), "low": low, "high": high})


def _contrast(
    made: _Means,
    frame: pd.DataFrame,
    model: MixedModel,
    cells: Sequence[dict[str, object]],
    request: MeansRequest,
    within: dict[str, object],
    wanted: Sequence[str],
    adjust: Adjustment,
    level: float,
) -> pd.DataFrame:
    """Tabulate the contrasts within one combination of the levels after the bar."""
    places = [k for k, cell in enumerate(cells) if all(cell[name] == value for name, value in within.items())]
    labels = [label({name: cells[k][name] for name in request.factors}) for k in places]
    names, weights = list_contrasts(wanted, labels)
    combinations = np.zeros((len(names), len(cells)))
    combinations[:, places] = weights
    estimate, gradient = made.combine(combinations, model)
    _check_determined(names, wanted, estimate, within)
    se = made.compute_standard_errors(gradient)
    df = find_df(frame, model, gradient)
    statistic = np.divide(estimate, se, where=se > 0, out=np.full(len(se), np.nan))
    covariance = gradient @ made.covariance @ gradient.T
    p, half = adjustment.adjust(adjust, statistic, df, covariance, len(places), level)
    table = pd.DataFrame(
        {
            **{name: [value] * len(names) for name, value in within.items()},
            "contrast": names,
            "estimate": estimate,
            "se": se,
            "df": _hide_infinite(df),
            "low": estimate - half * se,
            "high": estimate + half * se,
            "z": statistic,
            "p": 2 * t(df).sf(np.abs(statistic)),
        }
    )
    return table if adjust == "none" else table.assign(**{f"p_{adjust}": p})


def _check_determined(names: Sequence[str], wanted: Sequence[str], estimate: Floats, within: dict[str, object]) -> None:
    """Refuse a contrast that was asked for by name and that the data do not determine."""
    for name, value in zip(names, estimate, strict=True):
        if np.isnan(value) and name in wanted:
            where = f" at {label(within)}" if within else ""
            raise ForetellError(
                f"The data do not determine the contrast {name!r}{where}: a combination of levels has no rows, or all "
                "its responses are the same. Leave the contrast out, or an interaction out of the formula."
            )


def find_df(frame: pd.DataFrame, model: MixedModel, gradient: Floats) -> Floats:
    """Find degrees of freedom: each combination's own by Satterthwaite's method, also of linear models."""
    known = ~np.isnan(gradient).any(axis=1)
    df = np.full(len(gradient), np.nan)
    combinations = gradient[known, : len(model.coefficients)]
    if model.family == "gaussian":
        df[known] = linear.find_df(frame, model, combinations)
    else:
        df[known] = denominators.find_df(model, combinations)
    return df


def _hide_infinite(df: Floats) -> Floats:
    return np.where(np.isfinite(df), df, np.nan)


def _exponentiate(contrasts: pd.DataFrame, name: str) -> pd.DataFrame:
    with np.errstate(over="ignore"):
        return pd.DataFrame(
            {
                name: np.exp(contrasts["estimate"]),
                f"{name}_low": np.exp(contrasts["low"]),
                f"{name}_high": np.exp(contrasts["high"]),
            }
        )


def _explain(grid: Grid, request: MeansRequest, model: MixedModel, scale: Scale) -> list[str]:
    """Say what the means are averaged over and which scale they have."""
    link = marginal.get_link(model)
    quantity = QUANTITIES.get(model.family, "means")
    scales = {
        "link": "Means of the response." if link == "identity" else f"Link scale ({link}).{_explain_zero(model)}",
        "response": f"Response scale: {quantity} where every random effect is 0.",
        "population": f"Population scale: {quantity} averaged over the random effects.",
    }
    notes = [scales[scale]]
    if averaged := find_averaged(grid, request):
        notes.append(f"Averaged with equal weights over the levels of {', '.join(averaged)}.")
    if grid.means:
        held = ", ".join(f"{name} = {value:.4g}" for name, value in grid.means.items())
        notes.append(f"Held at the mean: {held}.")
    if grid.offsets:
        notes.append(f"Offsets are 0: {', '.join(grid.offsets)}.")
    if interacting := find_interactions(grid, request, model):
        notes.append(
            f"The factors interact with {', '.join(interacting)}, over which the means are averaged: averages may hide "
            "opposite effects."
        )
    return notes


def _explain_zero(model: MixedModel) -> str:
    """Say what the zero of an ordinal model's scale is, which has no intercept."""
    return (
        " Only differences have a meaning: 0 is where each predictor is 0 or at its reference level."
        if model.thresholds
        else ""
    )


def _explain_tests(
    means: pd.DataFrame, contrasts: pd.DataFrame, request: MeansRequest, adjust: Adjustment
) -> list[str]:
    df = pd.concat([means["df"], contrasts["df"]])
    tests = "t, with the degrees of freedom (Satterthwaite) shown" if df.notna().any() else "z (normal distribution)"
    notes = [f"Intervals and tests are {tests}."]
    if len(contrasts):
        where = f" within each level of {' and '.join(request.by)}" if request.by else ""
        each = len(contrasts) // max(1, contrasts.groupby(list(request.by)).ngroups if request.by else 1)
        family = f"the {each} contrasts" if each > 1 else "One contrast"
        words = adjustment.IN_WORDS[adjust if each > 1 else "none"]
        notes.append(f"{family[0].upper()}{family[1:]}{where}: p values and intervals {words}.")
    return notes


def _name_missing(cells: Sequence[dict[str, object]], made: _Means) -> list[str]:
    missing = [label(cell) for cell, value in zip(cells, made.values, strict=True) if np.isnan(value)]
    if not missing:
        return []
    return [
        f"The data do not determine these means, because a combination of levels has no rows or all its responses are "
        f"the same: {', '.join(missing)}."
    ]
