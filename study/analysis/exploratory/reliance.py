"""Reliance on the AI: what a first response, the AI's label and a final response say, by condition.

Relative AI reliance (RAIR) is the share of right final responses where the first was wrong and the AI right; relative
self-reliance (RSR), where the first was right and the AI wrong (Schemmer, Kuehl, Benz, Bartos & Satzger, 2023,
arXiv:2302.02187). Participants who never switch have RAIR 0 and RSR 1; those who always follow the AI, 1 and 0.
Over-reliance is agreement of the final response with an AI that is wrong, under-reliance disagreement with one that is
right (Buçinca, Malaya & Gajos, 2021, doi:10.1145/3449287).

Proportions are of all responses in a condition. Participants are what varies: the variance is that of a ratio over
participants, linearised, and the interval has the quantile of Student's t with one degree of freedom less than there
are participants (`study.analysis.responses.accuracies`). Participants without trials of a kind have no weight in its
proportion and are no degree of freedom.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.stats import t

from study import plots
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, TableAndFigure, with_figure
from study.analysis.responses import accuracies
from study.analysis.responses.decisions import decisions_of
from study.analysis.words.cells import write_rounded
from study.conditions import format_condition

RAIR, RSR = "RAIR", "RSR"
FIRST, FINAL, AI = "First response correct", "Final response correct", "AI correct"
GAIN, LEAD = "Final minus first", "Final minus AI"
Kind = Callable[[pd.DataFrame], "pd.Series[bool]"]


def _take_all(rows: pd.DataFrame) -> pd.Series[bool]:
    return pd.Series(True, index=rows.index)


SHARES: Mapping[str, tuple[Kind, str]] = {
    FIRST: (_take_all, "first_right"),
    FINAL: (_take_all, "final_right"),
    AI: (_take_all, "ai_right"),
    "Switched": (_take_all, "switched"),
    RAIR: (lambda rows: ~rows["first_right"] & rows["ai_right"], "final_right"),
    RSR: (lambda rows: rows["first_right"] & ~rows["ai_right"], "final_right"),
    "Over-reliance": (lambda rows: ~rows["ai_right"], "agrees"),
    "Under-reliance": (lambda rows: rows["ai_right"], "disagrees"),
}
"""By measure: the responses that count, and what is counted of them."""
DIFFERENCES = {GAIN: "first_right", LEAD: "ai_right"}
"""By measure: what is subtracted from the final response being right."""
OF_FIRST = (FIRST, "Switched", RAIR, RSR, GAIN)
"""Measures that need a first response."""


def tabulate(decisions: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Tabulate every measure by condition, with intervals over participants.

    Parameters
    ----------
    decisions
        One row per decision: participant, condition, first (the class of the first response), ai (the class that the AI
        gave), final, truth. Without ``first``, the measures `OF_FIRST` are left out.
    level
        Coverage of the intervals, a probability.

    Returns
    -------
    pandas.DataFrame
        condition, measure, participants and `responses` (from which the measure is computed), proportion (or
        difference of two), low, high. Missing: a proportion of no responses, and the interval of one participant or of
        an AI that is right equally often for all.
    """
    rows = _score(decisions)
    left_out = () if "first" in decisions else OF_FIRST
    made = []
    for name in accuracies.order(rows):
        part = rows[rows["condition"] == name]
        for measure, (kind, success) in SHARES.items():
            if measure not in left_out:
                made.append((name, measure, *_share(part[kind(part)], success, level, fixed=measure == AI)))
            if measure == AI:
                differences = {one: other for one, other in DIFFERENCES.items() if one not in left_out}
                made += [(name, one, *_difference(part, other, level)) for one, other in differences.items()]
    columns = ["condition", "measure", "participants", "responses", "proportion", "low", "high"]
    return pd.DataFrame(made, columns=columns)


def _score(decisions: pd.DataFrame) -> pd.DataFrame:
    """Add what was right, switched and agreed with the AI."""
    final, truth, ai = (decisions[name] for name in ("final", "truth", "ai"))
    rows = decisions.assign(final_right=final == truth, ai_right=ai == truth, agrees=final == ai, disagrees=final != ai)
    if "first" not in rows:
        return rows
    return rows.assign(first_right=rows["first"] == truth, switched=rows["first"] != final)


Estimate = tuple[int, int, float, float, float]
"""Participants, responses, estimate, and the limits of its interval."""


def _share(rows: pd.DataFrame, success: str, level: float, *, fixed: bool) -> Estimate:
    if rows.empty:
        return 0, 0, np.nan, np.nan, np.nan
    each = rows.groupby("participant")[success].agg(["sum", "size"]).to_numpy(dtype=np.float64)
    share, low, high = accuracies.compute_intervals(each[:, :1], each[:, 1:], level)
    limits = (float(low[0]), float(high[0]))
    if fixed and np.ptp(each[:, 0] / each[:, 1]) == 0:
        limits = (np.nan, np.nan)
    return len(each), len(rows), float(share[0]), *limits


def _difference(rows: pd.DataFrame, other: str, level: float) -> Estimate:
    change = rows["final_right"].astype(np.float64) - rows[other].astype(np.float64)
    each = change.groupby(rows["participant"]).agg(["sum", "size"]).to_numpy(dtype=np.float64)
    total, people = each.sum(axis=0), len(each)
    mean = float(total[0] / total[1])
    influence = (each[:, :1] - mean * each[:, 1:]) / total[1]
    error = float(np.sqrt(accuracies.compute_variance(influence, np.array([people]))[0]))
    half = float(t.ppf((1 + level) / 2, people - 1)) * error if people > 1 else np.nan
    return people, len(rows), mean, mean - half, mean + half


def describe(table: pd.DataFrame) -> str:
    """Describe each condition of a table of `tabulate` in a sentence."""
    return " ".join(_describe_condition(str(name), part) for name, part in table.groupby("condition", sort=False))


def _describe_condition(name: str, part: pd.DataFrame) -> str:
    by = part.set_index("measure")
    two_steps = GAIN in by.index
    shown = (RAIR, RSR) if two_steps else ("Over-reliance", "Under-reliance")
    measures = [f"{one if two_steps else one.lower()} {_write_share(by.loc[one])}" for one in shown]
    points, final, ai = _write_points(by.loc[GAIN if two_steps else LEAD]), *_write_percent(by, FINAL, AI)
    if not two_steps:
        return (
            f"{format_condition(name)}: {final} of responses were correct, where the AI was correct on {ai} "
            f"({points}); {' and '.join(measures)}."
        )
    return (
        f"{format_condition(name)}: {_write_percent(by, FIRST)[0]} of first and {final} of final responses were "
        f"correct ({points}), where the AI was correct on {ai}; {' and '.join(measures)}."
    )


def _write_percent(by: pd.DataFrame, *measures: str) -> list[str]:
    return [f"{by.loc[measure, 'proportion']:.1%}" for measure in measures]


def _write_points(difference: pd.Series[float]) -> str:
    points = f"{write_rounded(100 * difference['proportion'], 1, '+')} percentage points"
    if np.isnan(difference["low"]):
        return points
    low, high = (write_rounded(100 * difference[end], 1) for end in ("low", "high"))
    return f"{points} [{low}, {high}]"


def _write_share(row: pd.Series[float]) -> str:
    if not row["responses"]:
        return "unknown, without such trials"
    limits = f" [{row['low']:.1%}, {row['high']:.1%}]" if np.isfinite(row["low"]) else ""
    return f"{row['proportion']:.1%}{limits}"


def figure(table: pd.DataFrame) -> go.Figure:
    """Plot RSR by RAIR, with both intervals; on the line, responses follow a right AI as often as a wrong one."""
    drawn = go.Figure()
    for k, (name, part) in enumerate(table.groupby("condition", sort=False)):
        by = part.set_index("measure")
        color, symbol = plots.style("condition", name, k)
        x, y = by.loc[[RAIR]], by.loc[[RSR]]
        drawn.add_scatter(
            x=x["proportion"],
            y=y["proportion"],
            error_x=plots.whiskers(x, "proportion", color),
            error_y=plots.whiskers(y, "proportion", color),
            mode="markers",
            marker={"color": color, "size": 11, "symbol": symbol},
            name=format_condition(str(name)),
            hovertemplate="RAIR %{x:.1%}, RSR %{y:.1%}<extra>" + format_condition(str(name)) + "</extra>",
        )
    drawn.add_scatter(x=[0, 1], y=[1, 0], mode="lines", line=plots.DOTTED, showlegend=False, hoverinfo="skip")
    drawn.update_xaxes(title="RAIR: corrected by a right AI", range=[-0.03, 1.03], tickformat=".0%", showgrid=False)
    return plots.apply_layout(drawn, "RSR: kept against a wrong AI", True).update_yaxes(range=[-0.03, 1.03])


def _find_decisions(study: AnalysedStudy) -> pd.DataFrame | None:
    """Find decisions in two steps, or in one where participants saw the AI's label and named a class."""
    two_steps, task = decisions_of(study.data.every), study.data.task
    if two_steps is not None or not task.shows_label or task.choices is not None:
        return two_steps
    return decisions_of(study.data.every, is_one_step=True)


def _tabulate(study: AnalysedStudy) -> pd.DataFrame:
    decisions = _find_decisions(study)
    assert decisions is not None  # `needs` says so
    return tabulate(decisions)


def _compute(study: AnalysedStudy) -> TableAndFigure:
    table = study.once(_tabulate)
    return with_figure(table, figure) if RAIR in set(table["measure"]) else (table, None)


def _explain(study: AnalysedStudy) -> str:
    table = study.once(_tabulate)
    return f"{HOW if RAIR in set(table['measure']) else HOW_IN_ONE_STEP} {describe(table)}"


HOW = (
    "RAIR: of the trials on which the first response was wrong and the AI right, the share with a correct final "
    "response. RSR: the same where the first response was right and the AI wrong. Both are high where participants "
    "tell when to rely on the AI; on the dotted line they follow a wrong AI as often as a right one. Over-reliance: "
    "final responses that agree with a wrong AI; under-reliance: those that disagree with a right one. Final minus "
    "first compares the team with the human alone, final minus AI with the AI alone. 95% intervals over "
    "participants; participants without trials of a kind have no weight in its share."
)
HOW_IN_ONE_STEP = (
    "Over-reliance: responses that agree with a wrong AI; under-reliance: those that disagree with a right one. Final "
    "minus AI compares participants, who saw the AI's label, with the AI alone. Switches, RAIR and RSR need a response "
    "before the label (task `reliance`). 95% intervals over participants; participants without trials of a kind have "
    "no weight in its share."
)

ANALYSIS = ExploratoryAnalysis(
    "Reliance on the AI",
    _explain,
    _compute,
    needs=lambda study: _find_decisions(study) is not None,
)
