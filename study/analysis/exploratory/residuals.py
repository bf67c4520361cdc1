"""Does the largest model describe the responses? They are compared with responses drawn from it.

Each draw has new participants, categories and images. A property of the responses that lies outside those of the draws
is one that the model lacks. The residual of a participant or an image is a randomised quantile residual: the place of
their number of correct responses among the draws (Dunn & Smyth, 1996, doi:10.2307/1390802), uniform between 0 and 1
under the model. The draws take the estimates as if they were the truth, which makes the tests careful.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray
from scipy.stats import beta

from core.names import lower_first
from study import plots
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, TableAndFigure, has_models
from study.analysis.means.adjustment import holm
from study.analysis.models import random_effects
from study.analysis.models.draws import Draws
from study.analysis.models.records import Floats
from study.analysis.models.sentences import describe_p
from study.analysis.words.cells import write_rounded

DRAWS = 999
LOW, HIGH = 0.025, 0.975
"""Shares of the draws between which their 95% lie."""
DRAW_S, DRAW_ROW_S = 1e-4, 2.5e-7
"""Processor time of one draw and its properties, and what each response adds."""
FEWEST = 3
"""Levels of a grouping below which their spread says nothing."""
GROUPS = ("participant", random_effects.ITEM, "category")
NAMES = {"participant": "Participants", random_effects.ITEM: "Images", "category": "Categories"}
CELL = ["trial_type", "saliency", "examples"]


@dataclass(frozen=True)
class Rows:
    """The rows of the responses, as the properties need them.

    Attributes
    ----------
    frame
        One row per response.
    """

    frame: pd.DataFrame

    def code(self, columns: list[str]) -> NDArray[np.int64]:
        """Return (n,) the number of the combination of columns that each row has."""
        return np.asarray(self.frame.groupby(columns, observed=True, sort=False).ngroup())

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """(n,) the cell of the fixed effects of each row."""
        return self.code([name for name in CELL if name in self.frame])

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """(m, 2) the rows of consecutive trials of a participant."""
        order = np.lexsort([self.trials, self.code(["participant"])])
        people = self.code(["participant"])[order]
        return np.asarray(np.column_stack([order[:-1], order[1:]])[people[1:] == people[:-1]])

    @cached_property
    def trials(self) -> Floats:
        """(n,) the place of each response in its participant's order."""
        return np.asarray(pd.to_numeric(self.frame["trial"]), dtype=np.float64)

    def deviations(self, correct: Floats) -> Floats:
        """Return (n,) each response minus the share correct of its cell of the fixed effects."""
        return correct - _average(self.cells, correct)[self.cells]


def _average(codes: NDArray[np.int64], values: Floats) -> Floats:
    return np.bincount(codes, values) / np.bincount(codes)


Property = Callable[[Floats], float]
"""Computes a number from (n,) responses, 1 or 0."""


def list_properties(frame: pd.DataFrame) -> dict[str, Property]:
    """List what is compared with the draws, by its name in the table, as far as the columns allow it."""
    rows = Rows(frame)
    groups = [group for group in GROUPS if group in frame and frame[group].nunique() >= FEWEST]
    made: dict[str, Property] = {f"{NAMES[group]}: spread": _spread(rows, [group]) for group in groups}
    made |= {f"{NAMES[group]}: lowest accuracy": _lowest(rows, group) for group in groups[:2]}
    made["Participants × trial types: spread"] = _spread(rows, ["participant", "trial_type"], within="participant")
    if {"saliency", "examples"} <= set(frame):
        for group in groups[1:]:
            name = f"{NAMES[group]} × conditions: spread"
            made[name] = _spread(rows, [group, "saliency", "examples"], within=group)
    if "trial" in frame and pd.to_numeric(frame["trial"], errors="coerce").notna().all():
        made["Neighbouring responses alike"] = lambda correct: float(np.mean(np.equal(*correct[rows.pairs].T)))
        made["Rise over the trials"] = _trend(rows)
    return made


def _spread(rows: Rows, columns: list[str], within: str | None = None) -> Property:
    """Return the SD of the mean deviations of combinations of columns, or of their distances from those of `within`."""
    codes = rows.code(columns)
    first = np.unique(codes, return_index=True)[1]
    outer = rows.code([within])[first] if within else None

    def measure(correct: Floats) -> float:
        means = _average(codes, rows.deviations(correct))
        return float(np.std(means if outer is None else means - _average(outer, means)[outer]))

    return measure


def _lowest(rows: Rows, group: str) -> Property:
    codes = rows.code([group])
    return lambda correct: float(np.min(_average(codes, correct)))


def _trend(rows: Rows) -> Property:
    people = rows.code(["participant"])
    centred = rows.trials - _average(people, rows.trials)[people]
    span = np.ptp(rows.trials)
    return lambda correct: float(span * (centred @ rows.deviations(correct)) / (centred @ centred))


def draw(study: AnalysedStudy, count: int = DRAWS) -> Floats:
    """Return (count, n) responses drawn from the largest of the nested models.

    Raises
    ------
    ForetellError
        Nothing can be drawn from it.
    """
    draws, rng = Draws.of(study.frame, study.fitted_models.largest), study.rng
    made = np.empty((count, len(study.frame)))
    for k in range(count):
        study.progress(k, count, "Drawing responses from the model")
        made[k] = draws.sample(rng)
    study.progress(count, count, "Drawing responses from the model")
    return made


def compare(study: AnalysedStudy, drawn: Floats) -> pd.DataFrame:
    """Tabulate each property: `observed`, the mean and the 95% of the draws, p, and p corrected by Holm's method.

    p is twice the share of draws at least as far on the side of the observation, which counts among them.
    """
    correct, rows = study.frame["correct"].to_numpy(dtype=np.float64), []
    for name, measure in list_properties(study.frame).items():
        own, others = measure(correct), np.array([measure(one) for one in drawn])
        beyond = min(np.sum(others >= own - 1e-12), np.sum(others <= own + 1e-12))
        limits = np.quantile(others, (LOW, HIGH))
        rows.append((name, own, float(others.mean()), *limits, min(1.0, 2 * (beyond + 1) / (len(drawn) + 1))))
    table = pd.DataFrame(rows, columns=["property", "observed", "drawn", "drawn_from", "drawn_to", "p"])
    return table.assign(p_holm=holm(table["p"].to_numpy(dtype=np.float64)))


def describe(table: pd.DataFrame, level: float) -> str:
    """Say which properties the model lacks."""
    lacking = table[table["p_holm"] < level]
    if lacking.empty:
        return (
            f"The model reproduces all {len(table)} properties of the responses that were compared (smallest corrected "
            f"{describe_p(table['p_holm'].min())})."
        )
    named = [
        f"{lower_first(row['property'])} ({write_rounded(row['observed'], 3)}; draws "
        f"{write_rounded(row['drawn_from'], 3)} to {write_rounded(row['drawn_to'], 3)}, corrected "
        f"{describe_p(row['p_holm'])})"
        for row in lacking.to_dict("records")
    ]
    return (
        f"The model does not reproduce {len(lacking)} of {len(table)} properties of the responses: {'; '.join(named)}. "
        "Where responses vary more than the draws, standard errors and p may be too small."
    )


def draw_properties(table: pd.DataFrame) -> go.Figure:
    """Plot each property in standard deviations from the mean of the draws, whose 95% are the bar."""
    shown = table[::-1]
    sd = (shown["drawn_to"] - shown["drawn_from"]).clip(lower=1e-9) / 3.92
    place, low, high = ((shown[name] - shown["drawn"]) / sd for name in ("observed", "drawn_from", "drawn_to"))
    figure = go.Figure(
        go.Bar(
            x=high - low, base=low, y=shown["property"], orientation="h", width=0.45,
            marker={"color": plots.GRID}, name="95% of the draws", hoverinfo="skip",
        )
    )  # fmt: skip
    marker = {"color": plots.PALETTE[0], "symbol": plots.MARKS[0], "size": 10}
    figure.add_trace(
        go.Scatter(
            x=place, y=shown["property"], mode="markers", marker=marker, name="the responses",
            customdata=shown[["observed", "drawn_from", "drawn_to"]].to_numpy(),
            hovertemplate="%{y}: %{customdata[0]:.3f} [%{customdata[1]:.3f}, %{customdata[2]:.3f}]<extra></extra>",
        )
    )  # fmt: skip
    plots.apply_layout(figure, "", percent=False)
    figure.update_layout(height=130 + 30 * len(shown)).update_yaxes(showgrid=False, type="category", **plots.LABELS)
    return figure.update_xaxes(
        title="Distance from the draws' mean, in their standard deviations", gridcolor=plots.GRID
    )


def tabulate_residuals(study: AnalysedStudy, drawn: Floats) -> pd.DataFrame:
    """Tabulate of each participant and image: `responses`, correct, the mean and 95% of the draws, the residual (0-1).

    Where draws have as many correct responses as were observed, the residual is at random among them.
    """
    tables, rng = [], study.rng
    for group in (name for name in GROUPS[:2] if name in study.frame):
        codes, levels = pd.factorize(study.frame[group].astype(str))
        own = np.bincount(codes, study.frame["correct"].to_numpy(dtype=np.float64))
        others = np.array([np.bincount(codes, one) for one in drawn])
        low, high = np.quantile(others, (LOW, HIGH), axis=0)
        below, same = np.sum(others < own, axis=0), np.sum(others == own, axis=0)
        place = (below + rng.random(len(levels)) * (same + 1)) / (len(drawn) + 1)
        columns = {"group": NAMES[group], "level": levels, "responses": np.bincount(codes), "correct": own.astype(int)}
        columns |= {"drawn": others.mean(axis=0), "drawn_from": low, "drawn_to": high, "residual": place}
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def describe_residuals(table: pd.DataFrame) -> str:
    """Say how many participants and images lie outside the 95% of the draws, and how many are expected there."""
    said = []
    for name, part in table.groupby("group", sort=False):
        outside = int(np.sum((part["residual"] < LOW) | (part["residual"] > HIGH)))
        said.append(f"{outside} of {len(part)} {str(name).lower()}")
    return f"Outside the 95% of the draws are {' and '.join(said)}; about 5% are expected there."


def draw_residuals(table: pd.DataFrame) -> go.Figure:
    """Plot sorted residuals against those of a uniform distribution, with its 95% for each place."""
    figure = go.Figure()
    for k, (name, part) in enumerate(table.groupby("group", sort=False)):
        n = len(part)
        ranks = np.arange(1, n + 1)
        color, symbol = plots.PALETTE[k], plots.MARKS[k]
        at, sorted_ = (ranks - 0.5) / n, part.sort_values("residual")
        for share in (LOW, HIGH):
            figure.add_trace(
                go.Scatter(
                    x=at, y=beta.ppf(share, ranks, n + 1 - ranks), mode="lines", showlegend=False, hoverinfo="skip",
                    line={"color": color, "width": 1, "dash": "dash"},
                )
            )  # fmt: skip
        marker = {"color": color, "symbol": symbol, "size": 7}
        figure.add_trace(
            go.Scatter(
                x=at, y=sorted_["residual"], mode="markers", marker=marker, name=str(name), text=sorted_["level"],
                hovertemplate="%{text}: %{y:.3f}<extra></extra>",
            )
        )  # fmt: skip
    figure.update_xaxes(title="Uniform distribution", showgrid=False)
    return plots.diagonal(plots.apply_layout(figure, "Residual", percent=False))


def estimate_seconds(study: AnalysedStudy) -> float:
    """Estimate the processor time of the draws and of what is computed from them, s."""
    return DRAWS * (DRAW_S + DRAW_ROW_S * len(study.frame))


def _check(study: AnalysedStudy) -> TableAndFigure:
    table = compare(study, draw(study))
    return table, draw_properties(table)


def _list_residuals(study: AnalysedStudy) -> TableAndFigure:
    table = tabulate_residuals(study, draw(study))
    return table, draw_residuals(table)


CHECKS = ExploratoryAnalysis(
    "Responses drawn from the model",
    f"Properties of the responses, and of {DRAWS} sets of responses drawn from the largest model with new "
    "participants, categories and images. Spread: standard deviation, over the levels named, of accuracy minus that of "
    "the same trial type and condition; with ×, of what is left when the first one's own mean is subtracted. "
    "Neighbouring responses alike: share of consecutive trials that are both correct or both incorrect. Rise over the "
    "trials: change of accuracy from the first to the last trial. p: two-sided, from the draws, and corrected for the "
    "number of properties by Holm's method.",
    _check,
    has_models,
    lambda study, table: describe(table, study.level),
    estimate_seconds,
)
RESIDUALS = ExploratoryAnalysis(
    "Residuals of participants and images",
    f"Randomised quantile residuals: the place of a participant's or an image's number of correct responses among "
    f"{DRAWS} draws from the largest model, 0 where it is below all and 1 where it is above all. Under the model they "
    "are uniform: on the dotted line, and in 95 of 100 places between the dashed lines.",
    _list_residuals,
    has_models,
    lambda _, table: describe_residuals(table),
    estimate_seconds,
)
