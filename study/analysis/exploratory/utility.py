"""Utility of explanations: accuracy in test after training with them, relative to training without them.

Utility_K is the accuracy in test after K training images with an explanation divided by that of the control condition,
which trained without one. Utility is the area under Utility_K over K (Colin, Fel, Cadène & Serre, 2022, NeurIPS 35,
arXiv:2112.04417), here by the trapezoidal rule and divided by the range of K: it is 1 where explanations teach nothing,
whatever the values of K. With one K, it is Utility_K.

Accuracies are shares of all responses of a condition at one K. Intervals are percentiles of a bootstrap that draws
participants with replacement within conditions, all their responses together.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from core.errors import ForetellError
from study import plots
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, TableAndFigure, with_figure
from study.analysis.responses import accuracies
from study.analysis.responses.blocks import SEEN
from study.conditions import format_condition

Floats = NDArray[np.float64]
CONTROL = "none"
DRAWS = 2000
"""Draws of the bootstrap."""
ACCURACY, AT_K, UTILITY = "Accuracy", "Utility at K", "Utility"
COLUMNS = ["condition", "measure", SEEN, "participants", "responses", "estimate", "low", "high"]


def tabulate(frame: pd.DataFrame, rng: np.random.Generator, *, draws: int = DRAWS, level: float = 0.95) -> pd.DataFrame:
    """Tabulate accuracy and utility after each number of training images, and the utility over all of them.

    Parameters
    ----------
    frame
        One row per response in test: participant, condition, correct (0 or 1) and n_training.
    rng
        Draws the participants.
    draws
        Of the bootstrap.
    level
        Coverage of the intervals, a probability.

    Returns
    -------
    pandas.DataFrame
        condition, measure, n_training (missing for the utility over all), participants, `responses`, estimate, low,
        high. The control condition has accuracies alone.

    Raises
    ------
    ForetellError
        The study has no blocks, no control condition or no other one, or a condition has no responses after some
        number of training images, or the control no correct ones.
    """
    _refuse_unusable(frame)
    names, steps = accuracies.order(frame), sorted(frame[SEEN].unique())
    counts = {name: _count(frame[frame["condition"] == name], steps) for name in names}
    made = {name: _divide(*(part.sum(axis=0) for part in counts[name])) for name in names}
    drawn = {name: _resample(*counts[name], rng, draws) for name in names}
    _refuse_empty(made, steps)
    rows = []
    for name in names:
        people, given = len(counts[name][0]), counts[name][1].sum(axis=0)
        rows += _list_rows(name, ACCURACY, steps, people, given, made[name], drawn[name], level)
        if name != CONTROL:
            ratio, ratios = _divide(made[name], made[CONTROL]), _divide(drawn[name], drawn[CONTROL])
            rows += _list_rows(name, AT_K, steps, people, given, ratio, ratios, level)
            area, areas = _average(ratio[None], steps), _average(ratios, steps)[:, None]
            rows += _list_rows(name, UTILITY, [np.nan], people, given.sum(keepdims=True), area, areas, level)
    return pd.DataFrame(rows, columns=COLUMNS).astype({SEEN: "Int64"})


def _refuse_unusable(frame: pd.DataFrame) -> None:
    if SEEN not in frame:
        raise ForetellError("The study has no blocks of training and test, so nothing was taught before the responses.")
    if CONTROL not in set(frame["condition"]):
        raise ForetellError(
            f"No participant was in the condition {CONTROL!r}, which trains without an explanation, and utility is "
            "relative to it. Add it to the conditions of the next study."
        )
    if set(frame["condition"]) == {CONTROL}:
        raise ForetellError("Every participant trained without an explanation, so there is none to have a utility.")


def _refuse_empty(made: Mapping[str, Floats], steps: list[float]) -> None:
    for name, shares in made.items():
        if np.isnan(shares).any():
            raise ForetellError(
                f"The condition {name!r} has no responses after {steps[int(np.isnan(shares).argmax())]:g} training "
                "images: collect them first."
            )
    if (made[CONTROL] == 0).any():
        raise ForetellError(f"The condition {CONTROL!r} has no correct response after some number of training images.")


def _count(frame: pd.DataFrame, steps: list[float]) -> tuple[Floats, Floats]:
    """Count correct and all responses, (participants, steps)."""
    right, given = (one.reindex(columns=steps, fill_value=0.0) for one in accuracies.count_by_participant(frame, SEEN))
    return right.to_numpy(dtype=np.float64), given.to_numpy(dtype=np.float64)


def _resample(right: Floats, given: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """Draw participants, and return the accuracies of each draw, (draws, steps)."""
    people = len(right)
    weights = rng.multinomial(people, np.full(people, 1 / people), size=draws).astype(np.float64)
    return _divide(weights @ right, weights @ given)


def _divide(above: Floats, below: Floats) -> Floats:
    """Divide; missing where there is nothing to divide by."""
    missing = np.full(np.shape(above), np.nan)
    return np.asarray(np.divide(above, below, out=missing, where=below > 0), dtype=np.float64)


def _average(ratios: Floats, steps: list[float]) -> Floats:
    """Average curves (draws, steps) over K: the area by the trapezoidal rule, divided by the range of K."""
    if len(steps) == 1:
        return ratios[:, 0]
    return np.asarray(np.trapezoid(ratios, steps, axis=1) / (steps[-1] - steps[0]), dtype=np.float64)


def _list_rows(
    name: str,
    measure: str,
    steps: list[float],
    people: int,
    given: Floats,
    estimates: Floats,
    draws: Floats,
    level: float,
) -> list[tuple[object, ...]]:
    low, high = np.nanquantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    columns = zip(steps, given.astype(int).tolist(), estimates, low, high, strict=True)
    return [(name, measure, step, people, n, float(e), float(a), float(b)) for step, n, e, a, b in columns]


def describe(table: pd.DataFrame) -> str:
    """Say the utility of each explanation, and whether its interval is on one side of 1."""
    rows = table[table["measure"] == UTILITY].to_dict("records")
    return " ".join(
        f"{format_condition(str(row['condition']))}: utility {row['estimate']:.2f} "
        f"[{row['low']:.2f}, {row['high']:.2f}], {_judge(row['low'], row['high'])}."
        for row in rows
    )


def _judge(low: float, high: float) -> str:
    if low > 1:
        return "so training with it helped to predict the AI"
    return "so training with it hindered" if high < 1 else "which includes 1, where an explanation teaches nothing"


def figure(table: pd.DataFrame) -> go.Figure:
    """Plot the utility at each number of training images; on the dotted line, an explanation teaches nothing."""
    rows = table[table["measure"] == AT_K].astype({SEEN: "float64"})
    drawn = plots.curves(
        rows,
        x=SEEN,
        y="estimate",
        by="condition",
        title="Accuracy relative to no explanation",
        x_title="Training images seen (K)",
        percent=False,
    )
    drawn.add_hline(y=1, line=plots.DOTTED)
    return drawn


def _compute(study: AnalysedStudy) -> TableAndFigure:
    return with_figure(tabulate(study.data.every, study.rng), figure)


ANALYSIS = ExploratoryAnalysis(
    "Utility of explanations",
    "Accuracy in test, to images alone, after K training images; its ratio to that of participants who trained without "
    "an explanation (utility at K); and the area under these ratios by the trapezoidal rule, divided by the range of K "
    f"(utility). 1: the explanation teaches nothing. 95% percentile intervals of {DRAWS:,} bootstrap draws of "
    "participants within conditions.",
    _compute,
    needs=lambda study: SEEN in study.data.every,
    conclude=lambda _, table: describe(table),
)
