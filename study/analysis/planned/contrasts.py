"""Contrasts between cells of the design, tested on the link scale and corrected for their number by Holm's method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from core.errors import ForetellError
from core.names import lower_first
from study.analysis.means.adjustment import holm
from study.analysis.models import denominators, estimability, levels, marginal
from study.analysis.models.records import Floats, MixedModel
from study.analysis.responses.outcome import ACCURACY, LEVEL, choose_outcome
from study.analysis.responses.reading import CONDITION_OF_FACTORS
from study.bundle import EVERY_TYPE, OF_UNITS, TRIAL_TYPES, TYPE_LABELS
from study.conditions import format_condition
from study.plan.comparisons import list_factorial_comparisons
from study.plan.covariates import COVARIATES

FACTORS = {name: dict(zip(("saliency", "examples"), pair, strict=True)) for pair, name in CONDITION_OF_FACTORS.items()}
"""The two factors' values of each condition."""
Cells = Mapping[str, Mapping[str, Any]]
"""The columns of the design, besides the trial type, that make each condition."""
NO_CONTRAST = "No contrast is between two conditions that have responses."


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
"""The contrasts of a study in all four conditions: each explanation against none, for each trial type."""


def list_default(frame: pd.DataFrame) -> list[Contrast]:
    """List the contrasts of a study without a plan: each condition against the first, for each trial type."""
    pairs, kinds = list_factorial_comparisons(set(frame["condition"])), list_trial_types(frame)
    each = [TRIAL_TYPES] if kinds == [*OF_UNITS] else [(kind,) for kind in kinds]
    return [Contrast(more, less, types) for types in each for more, less in pairs]


def list_trial_types(frame: pd.DataFrame) -> list[str]:
    """List the trial types that have responses."""
    present = set(frame["trial_type"])
    return [kind for kind in EVERY_TYPE if kind in present]


def select_testable(frame: pd.DataFrame, wanted: Sequence[Contrast]) -> list[Contrast]:
    """Select the contrasts whose conditions and trial types have responses; one over all types needs any of them."""
    return [one for one in wanted if not _find_absent(frame, one)]


def describe_untestable(frame: pd.DataFrame, wanted: Sequence[Contrast]) -> str | None:
    """Say which contrasts are left out because nobody responded in their conditions or trial types; None for none."""
    absent = {one: lost for one in wanted if (lost := _find_absent(frame, one))}
    if not absent:
        return None
    causes = ", ".join(dict.fromkeys(cause for lost in absent.values() for cause in lost))
    count = f"{len(absent)} planned contrast{'s are' if len(absent) > 1 else ' is'}"
    return f"{count} not tested, because nobody responded with: {causes}."


def _find_absent(frame: pd.DataFrame, contrast: Contrast) -> list[str]:
    """Name a contrast's conditions and trial types without responses."""
    people, kinds = set(frame["condition"]), set(frame["trial_type"])
    lost = [lower_first(format_condition(name)) for name in (contrast.more, contrast.less) if name not in people]
    if contrast.trial_types != TRIAL_TYPES:
        lost += [TYPE_LABELS[kind] for kind in contrast.trial_types if kind not in kinds]
    return lost


def table(
    model: MixedModel,
    contrasts: Sequence[Contrast] = DEFAULT,
    *,
    level: float = 0.95,
    cells: Cells = FACTORS,
) -> pd.DataFrame:
    """Estimate each contrast with its interval and test.

    Parameters
    ----------
    cells
        The columns of the design, besides the trial type, that make each condition.

    Returns
    -------
    pandas.DataFrame
        contrast, estimate (link scale), se, low, high (unadjusted), z, df (of a t test, else NaN), p, p_holm (over
        those that have a p); of a binomial model also accuracy_less, accuracy_more (probabilities, averaged over
        participants, categories, images and trial types), points (their difference in percentage points), points_low,
        points_high (delta method), of an ordinal one the columns of mean levels (`LEVEL`) and odds_ratio
        (of a higher level), odds_ratio_low, odds_ratio_high. A contrast that these data do not determine has no
        estimate, interval and p
        (`study.analysis.models.estimability`).

    Raises
    ------
    ForetellError
        An unknown condition or trial type.
    """
    made = estimate(model, contrasts, level=level, cells=cells)
    half = t(made["df"].fillna(np.inf).to_numpy(np.float64)).ppf((1 + level) / 2)
    return _add_odds_ratios(made.join(_compare_means(model, contrasts, cells, half)), model)


def estimate(
    model: MixedModel,
    contrasts: Sequence[Contrast],
    *,
    level: float = 0.95,
    cells: Cells = FACTORS,
) -> pd.DataFrame:
    """Estimate each contrast on the link scale alone: `table` as far as ``p_holm``."""
    frame, sides = place_cells(model, contrasts, cells)
    design = model.design_with_dropped(frame)
    weights = np.stack([design[more].mean(axis=0) - design[less].mean(axis=0) for more, less in sides])
    estimate, se = estimability.estimate_combinations(weights, model)
    df = denominators.find_df(model, weights[:, : len(model.coefficients)])
    tail = t(df)
    half = tail.ppf((1 + level) / 2) * se
    p = 2 * tail.sf(np.abs(estimate / se))
    rows = {
        "contrast": [contrast.name for contrast in contrasts],
        "estimate": estimate,
        "se": se,
        "low": estimate - half,
        "high": estimate + half,
        "z": estimate / se,
        "df": np.where(np.isfinite(df), df, np.nan),
        "p": p,
        "p_holm": holm(p),
    }
    return pd.DataFrame(rows)


def _compare_means(model: MixedModel, contrasts: Sequence[Contrast], cells: Cells, half: Floats) -> pd.DataFrame:
    """Express the contrasts in percentage points, or in levels; `half` (k,) standard errors on each side."""
    if model.family not in (ACCURACY.family, LEVEL.family):
        return pd.DataFrame(index=range(len(contrasts)))
    is_scored = model.family == ACCURACY.family
    outcome = choose_outcome(is_scored=is_scored)
    frame, sides = place_cells(model, contrasts, cells)
    mean, gradient = marginal.predict(frame, model) if is_scored else levels.predict(frame, model)
    less, more = (np.array([mean[side[k]].mean() for side in sides]) for k in (1, 0))
    slopes = np.stack([gradient[first].mean(axis=0) - gradient[second].mean(axis=0) for first, second in sides])
    errors = (estimability if is_scored else levels).compute_standard_errors(slopes, model)
    difference, width = more - less, half * errors
    made = {outcome.difference: difference, outcome.low: difference - width, outcome.high: difference + width}
    means = {outcome.less: less, outcome.more: more}
    return pd.DataFrame(means | {name: outcome.unit * value for name, value in made.items()})


def _add_odds_ratios(made: pd.DataFrame, model: MixedModel) -> pd.DataFrame:
    """Add the odds ratio of a higher level and its interval to contrasts of an ordinal model."""
    if model.family != LEVEL.family:
        return made
    names = {"odds_ratio": "estimate", "odds_ratio_low": "low", "odds_ratio_high": "high"}
    return made.assign(**{ratio: np.exp(made[name]) for ratio, name in names.items()})


def place_cells(
    model: MixedModel, contrasts: Sequence[Contrast], cells: Cells
) -> tuple[pd.DataFrame, list[tuple[list[int], list[int]]]]:
    """Return the cells of the design that contrasts average, and the rows of the two conditions of each contrast."""
    rows: dict[tuple[str, str], int] = {}

    def find(name: str, contrast: Contrast) -> list[int]:
        return [rows.setdefault((name, kind), len(rows)) for kind in list_averaged_types(model, contrast)]

    _check(contrasts, cells)
    sides = [(find(one.more, one), find(one.less, one)) for one in contrasts]
    frame = pd.concat([pd.DataFrame({"trial_type": [kind], **cells[name]}) for name, kind in rows], ignore_index=True)
    return frame.assign(**dict.fromkeys(COVARIATES, 0.0)), sides  # at the mean of what is standardised


def _check(contrasts: Sequence[Contrast], cells: Cells) -> None:
    for contrast in contrasts:
        for name in (contrast.more, contrast.less):
            if name not in cells:
                raise ForetellError(f"There is no condition {name!r} to contrast; there are {', '.join(cells)}.")
        for kind in contrast.trial_types:
            if kind not in EVERY_TYPE:
                raise ForetellError(f"There is no trial type {kind!r} to contrast; there are {', '.join(TRIAL_TYPES)}.")


def list_averaged_types(model: MixedModel, contrast: Contrast) -> Sequence[str]:
    """List a contrast's trial types; one over all of them is over those that the data have."""
    known = model.levels.get("trial_type", TRIAL_TYPES)
    return (
        [kind for kind in EVERY_TYPE if kind in known] if contrast.trial_types == TRIAL_TYPES else contrast.trial_types
    )
