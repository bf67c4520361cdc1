"""Estimates of groups of participants: their intervals, and differences between conditions by Welch's t."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray
from scipy.stats import t

from core.errors import ForetellError
from core.names import lower_first
from study import plots
from study.analysis.means.adjustment import holm
from study.analysis.models.sentences import alpha_text, describe_p
from study.analysis.responses import accuracies
from study.analysis.words.cells import write_rounded
from study.analysis.words.headings import format_heading
from study.conditions import format_condition

READING = (
    "Differences from the first condition, with 95% intervals (Welch's t); p by Holm's method is corrected for the "
    "number of rows."
)


class Estimate(NamedTuple):
    """A number about a group, with its standard error over its participants; NaN where they do not determine it."""

    value: float = np.nan
    se: float = np.nan
    people: int = 0

    def limit(self, level: float) -> tuple[float, float]:
        """Return the limits of its interval, by Student's t with a degree of freedom less than participants."""
        half = _find_quantile(self.people - 1, level) * self.se
        return self.value - half, self.value + half

    def subtract(self, other: Estimate) -> tuple[float, float, float]:
        """Return the difference from another group, its standard error, and Welch's degrees of freedom."""
        se = float(np.hypot(self.se, other.se))
        parts = [one.se**4 / max(one.people - 1, 1) for one in (self, other)]
        return self.value - other.value, se, se**4 / sum(parts) if se > 0 else np.nan


def average(values: NDArray[np.float64]) -> Estimate:
    """Average a number of each participant."""
    people = len(values)
    se = float(values.std(ddof=1) / np.sqrt(people)) if people > 1 else np.nan
    return Estimate(float(values.mean()) if people else np.nan, se, people)


def average_each(made: pd.DataFrame, measures: Sequence[str]) -> dict[str, dict[str, Estimate]]:
    """Average the measures of the participants (a row each) of each condition, the first one first."""
    return {
        name: {measure: average(made.loc[made["condition"] == name, measure].to_numpy()) for measure in measures}
        for name in accuracies.order(made)
    }


def write_row(estimates: Mapping[str, Estimate], level: float) -> dict[str, float]:
    """Write each measure, its ``_low`` and its ``_high``."""
    row: dict[str, float] = {}
    for measure, one in estimates.items():
        low, high = one.limit(level)
        row |= {measure: one.value, f"{measure}_low": low, f"{measure}_high": high}
    return row


def check_independent(frame: pd.DataFrame) -> None:
    """Refuse to compare conditions that are no independent groups.

    Raises
    ------
    ForetellError
        There is one condition, or a participant was in several.
    """
    if frame["condition"].nunique() < 2 or frame.groupby("participant")["condition"].nunique().max() > 1:
        raise ForetellError("Differences need at least two conditions, each with participants of its own.")


def compare(
    groups: Iterable[tuple[Mapping[str, object], Mapping[str, Mapping[str, Estimate]]]], level: float
) -> pd.DataFrame:
    """Compare each condition with the first.

    Parameters
    ----------
    groups
        Columns that say of what, such as the trials, and the measures of each condition, the first one first.

    Returns
    -------
    pandas.DataFrame
        those columns, measure, contrast, difference, se, low, high, p, p_holm (over all rows).
    """
    rows = []
    for known, conditions in groups:
        first, *others = conditions
        for measure in conditions[first]:
            for name in others:
                difference, se, df = conditions[name][measure].subtract(conditions[first][measure])
                half = _find_quantile(df, level) * se
                p = float(2 * t.sf(abs(difference / se), df)) if se > 0 else np.nan
                limits = {"low": difference - half, "high": difference + half, "p": p}
                told = {"measure": measure, "contrast": f"{name} - {first}", "difference": difference, "se": se}
                rows.append({**known, **told, **limits})
    table = pd.DataFrame(rows)
    return table.assign(p_holm=holm(table["p"].to_numpy()))


def conclude(table: pd.DataFrame, level: float, digits: int = 2) -> str:
    """Say which differences, from `compare`, are below a level of significance after correction."""
    changed = table[table["p_holm"] < level]
    if changed.empty:
        return f"No difference between conditions has a Holm-corrected p below {alpha_text(level)}."
    return f"Against {_name_side(table['contrast'].iloc[0], 1)}: {'; '.join(_describe(changed, digits))}."


def _describe(changed: pd.DataFrame, digits: int) -> list[str]:
    return [
        f"{_name_side(row['contrast'], 0)}{', ' + str(row['trials']) if 'trials' in row else ''}, "
        f"{lower_first(format_heading(str(row['measure'])))} {write_rounded(row['difference'], digits, '+')} "
        f"(Holm-corrected {describe_p(row['p_holm'])})"
        for row in changed.to_dict("records")
    ]


def _name_side(contrast: str, side: int) -> str:
    return lower_first(format_condition(str(contrast).split(" - ")[side]))


def _find_quantile(df: float, level: float) -> float:
    return float(t.ppf((1 + level) / 2, df)) if df > 0 else np.nan


def plot_measures(table: pd.DataFrame, words: Mapping[str, str], *, title: str, line: float) -> go.Figure:
    """Plot measures by condition with their intervals, from their columns; ``words`` name each in the legend."""
    parts = [
        table[["condition"]].assign(
            measure=said, value=table[name], low=table[f"{name}_low"], high=table[f"{name}_high"]
        )
        for name, said in words.items()
    ]
    return plots.intervals(pd.concat(parts), x="condition", y="value", by="measure", title=title, line=line)
