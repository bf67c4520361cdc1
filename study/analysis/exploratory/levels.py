"""How often participants gave each level of a scale, where the AI was right and where it was wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.errors import ForetellError
from core.names import format_name
from study import plots
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, TableAndFigure, with_figure
from study.analysis.responses import accuracies
from study.analysis.responses.outcome import LEVEL
from study.bundle import TRIAL_TYPES, TYPE_LABELS
from study.conditions import format_condition


def table(frame: pd.DataFrame, choices: tuple[str, ...]) -> pd.DataFrame:
    """Tabulate condition, trial_type, level, choice, `responses`, share, low, high (95%, over participants).

    ``share`` is of the responses of a condition and trial type; ``responses`` are those of the level.

    Raises
    ------
    ForetellError
        The column ``choice`` has a value that is none of the ``choices``.
    """
    unknown = sorted({*frame["choice"].dropna().astype(str)} - {*choices})
    if unknown:
        raise ForetellError(f"Column 'choice' has {unknown[0]!r}: its values are {', '.join(choices)}.")
    given = frame[frame["choice"].notna()]
    rows = []
    for condition in accuracies.order(given):
        for trial_type in TRIAL_TYPES:
            own = given[(given["condition"] == condition) & (given["trial_type"] == trial_type)]
            if own.empty:
                continue
            counts = pd.crosstab(own["participant"], own["choice"]).reindex(columns=list(choices), fill_value=0)
            chosen = counts.to_numpy(dtype=np.float64)
            every = np.repeat(chosen.sum(axis=1, keepdims=True), len(choices), axis=1)
            share, low, high = accuracies.compute_intervals(chosen, every, 0.95)
            rows += [
                (condition, trial_type, k + 1, choice, int(chosen[:, k].sum()), share[k], low[k], high[k])
                for k, choice in enumerate(choices)
            ]
    names = ["condition", "trial_type", "level", "choice", "responses", "share", "low", "high"]
    return pd.DataFrame(rows, columns=names)


def has_levels(study: AnalysedStudy) -> bool:
    """Whether responses are levels of a scale, or choices that name them."""
    return study.data.task.is_scale and bool({"choice", LEVEL.column} & set(study.frame))


def figure(table: pd.DataFrame) -> go.Figure:
    """Draw the shares of `table` as stacked bars, the lowest level at the left, a bar for each condition and type."""
    groups = table[["condition", "trial_type"]].drop_duplicates()
    names = [f"{format_condition(c)}, {TYPE_LABELS[kind]}" for c, kind in groups.itertuples(index=False)]
    drawn, places = go.Figure(), list(range(len(names)))[::-1]
    left = np.zeros(len(names))
    choices = table.drop_duplicates("level").sort_values("level")
    for level, choice in choices[["level", "choice"]].itertuples(index=False):
        share = table.loc[table["level"] == level, "share"].to_numpy(dtype=np.float64)
        drawn.add_trace(
            go.Bar(
                x=share,
                y=places,
                base=left,
                width=0.8,
                orientation="h",
                name=f"{level} {format_name(choice).lower()}",
                marker={"color": _shade(level, len(choices))},
                hovertemplate="%{y}: %{x:.1%}<extra>" + format_name(choice) + "</extra>",
            )
        )
        left = left + share
    plots.apply_layout(drawn, "", percent=False)
    drawn.update_layout(barmode="overlay", height=130 + 26 * len(names))
    drawn.update_xaxes(title="Share of responses", tickformat=".0%", range=[0, 1], gridcolor=plots.GRID)
    return drawn.update_yaxes(tickvals=places, ticktext=names, **plots.LABELS, showgrid=False)


def _shade(level: int, count: int) -> str:
    """Return the colour of a level: from orange, the lowest, over grey to blue."""
    low, middle, high = (213, 94, 0), (200, 200, 200), (0, 114, 178)
    place = 2 * (level - 1) / (count - 1) - 1
    mixed = [round(m + abs(place) * (end - m)) for m, end in zip(middle, low if place < 0 else high, strict=True)]
    return "#{:02X}{:02X}{:02X}".format(*mixed)


def _compute(study: AnalysedStudy) -> TableAndFigure:
    return with_figure(table(name_choices(study), study.data.task.choices or ()), figure)


def name_choices(study: AnalysedStudy) -> pd.DataFrame:
    """Return the responses with the names of their levels as ``choice``."""
    choices = study.data.task.choices or ()
    if LEVEL.column not in study.frame:
        return study.frame
    return study.frame.assign(choice=[choices[level - 1] for level in study.frame[LEVEL.column]])


def _explain(study: AnalysedStudy) -> str:
    side = " Correct responses count the side of the scale only." if study.data.task.is_scored else ""
    return (
        "Share of each level among the responses of a condition and trial type, the lowest level first; 95% intervals "
        f"over participants.{side}"
    )


ANALYSIS = ExploratoryAnalysis("Levels of the scale", _explain, _compute, needs=has_levels, is_of_levels=True)
