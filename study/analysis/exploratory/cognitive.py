"""Theories of how participants respond, compared with their responses: maximum likelihood, and accuracy by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from core.errors import ForetellError
from core.names import format_name
from study import plots
from study.analysis.exploratory.analysis import (
    AnalysedStudy,
    ExploratoryAnalysis,
    TableAndFigure,
    asks_prediction_of_trials,
)
from study.analysis.planned.nested import cell_name
from study.analysis.responses.reading import CONDITION_OF_FACTORS
from study.bundle import TRIAL_TYPES, Trial
from study.plan.simulated_participants import THEORIES
from study.tasks.theory import ShownExplanations, Theory

_SHARES = ("lapse", "absence")
"""Parameters that are probabilities, searched as log-odds."""
_WITHIN = 1e-9
"""Bounds of a probability: no response is taken for impossible."""


@dataclass(frozen=True)
class FittedTheory:
    """A theory with the parameters that make the responses likeliest, as if all participants were alike."""

    name: str
    theory: Theory
    parameters: Mapping[str, float]
    loglik: float

    @property
    def aic(self) -> float:
        """Akaike's criterion, for theories of the same responses."""
        return 2.0 * len(self.parameters) - 2.0 * self.loglik


def fit(frame: pd.DataFrame, trials: Mapping[str, Trial], name: str) -> FittedTheory:
    """Estimate a theory's parameters.

    Parameters
    ----------
    frame
        Responses with ``item``, saliency, examples, correct.
    trials
        The frozen trials by item.

    Raises
    ------
    ForetellError
        The responses name no items, or items that are not among the trials.
    """
    counts = _counts(frame, trials)
    theory: Any = THEORIES[name]
    names = [field.name for field in fields(theory)]
    start = np.array([_free(n, getattr(theory(), n)) for n in names])

    def loss(free: NDArray[np.float64]) -> float:
        p = _probabilities(counts, trials, theory(**_bound(names, free)))
        return -float(np.sum(counts["right"] * np.log(p) + (counts["responses"] - counts["right"]) * np.log1p(-p)))

    best = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-6}) if names else None
    parameters = _bound(names, best.x if best is not None else start)
    return FittedTheory(name, theory(**parameters), parameters, -loss(best.x if best is not None else start))


def rank_theories(frame: pd.DataFrame, trials: Mapping[str, Trial]) -> list[FittedTheory]:
    """Fit every theory, and put the smallest AIC first; errors are those of `fit`."""
    return sorted((fit(frame, trials, name) for name in THEORIES), key=lambda fitted: fitted.aic)


def comparison(theories: Sequence[FittedTheory]) -> pd.DataFrame:
    """Tabulate theory, aic, loglik and every parameter, missing where a theory does not have it."""
    rows = [{"theory": format_name(f.name), "aic": f.aic, "loglik": f.loglik, **f.parameters} for f in theories]
    return pd.DataFrame(rows)


def overlay(frame: pd.DataFrame, trials: Mapping[str, Trial], fitted: FittedTheory) -> pd.DataFrame:
    """Tabulate cell, `responses`, people (share of correct responses) and theory (what the fitted theory expects)."""
    counts = _counts(frame, trials)
    counts = counts.assign(expected=_probabilities(counts, trials, fitted.theory) * counts["responses"])
    counts["trial_type"] = [trials[item].trial_type for item in counts["item"]]
    cells = counts.groupby(["trial_type", "saliency", "examples"])[["responses", "right", "expected"]].sum()
    cells = cells.reset_index()
    cells = cells.loc[sorted(cells.index, key=lambda row: _find_place(cells.loc[row]))].reset_index(drop=True)
    named = [cell_name(row) for row in cells[["trial_type", "saliency", "examples"]].to_dict("records")]
    return pd.DataFrame(
        {
            "cell": named,
            "responses": cells["responses"],
            "people": cells["right"] / cells["responses"],
            "theory": cells["expected"] / cells["responses"],
        }
    )


def _find_place(cell: Mapping[str, Any]) -> tuple[int, int]:
    """Find the place of a cell: by trial type, then by condition, both in the order of the design."""
    condition = (int(cell["saliency"]), int(cell["examples"]))
    return TRIAL_TYPES.index(cell["trial_type"]), list(CONDITION_OF_FACTORS).index(condition)


def figure(cells: pd.DataFrame, name: str) -> go.Figure:
    """Plot participants and theory in the cells of an `overlay`: marks on one another where they agree."""
    labels = [cell.replace(" with ", "<br>with ") for cell in cells["cell"]]  # two lines leave a phone room for marks
    drawn = go.Figure()
    for k, (series, column) in enumerate((("Participants", "people"), (format_name(name), "theory"))):
        color, symbol = plots.style("series", series, k)
        marker = {"color": color, "symbol": symbol, "size": 11}
        drawn.add_scatter(x=cells[column], y=labels, mode="markers", name=series, marker=marker)
    plots.apply_layout(drawn, "", percent=False)
    drawn.update_layout(height=130 + 36 * len(cells)).update_yaxes(autorange="reversed", **plots.LABELS)
    return drawn.update_xaxes(title="Correct predictions", tickformat=".0%", range=[0, 1.03])


def _counts(frame: pd.DataFrame, trials: Mapping[str, Trial]) -> pd.DataFrame:
    if "item" not in frame:
        raise ForetellError("The responses have no column 'item': theories need the trial of each response.")
    unknown = sorted(set(frame["item"]) - set(trials))
    if unknown:
        raise ForetellError(f"The responses name {len(unknown)} items that the study does not have: {unknown[0]!r}.")
    grouped = frame.groupby(["item", "saliency", "examples"])["correct"]
    return grouped.agg(responses="size", right="sum").reset_index()


def _probabilities(counts: pd.DataFrame, trials: Mapping[str, Trial], theory: Theory) -> NDArray[np.float64]:
    p = [
        theory.p_ai(trials[item], ShownExplanations(bool(saliency), bool(examples)))
        for item, saliency, examples in zip(counts["item"], counts["saliency"], counts["examples"], strict=True)
    ]
    return np.asarray(np.clip(np.array(p), _WITHIN, 1 - _WITHIN), dtype=np.float64)


def _free(name: str, value: float) -> float:
    return float(logit(value)) if name in _SHARES else value


def _bound(names: list[str], free: NDArray[np.float64]) -> dict[str, float]:
    held = np.clip(free, -20.0, 20.0)
    return {n: float(expit(v)) if n in _SHARES else float(f) for n, v, f in zip(names, held, free, strict=True)}


def _rank(study: AnalysedStudy) -> list[FittedTheory]:
    return rank_theories(study.frame, study.trials)


def _overlay_best(study: AnalysedStudy) -> TableAndFigure:
    best = study.once(_rank)[0]
    cells = overlay(study.frame, study.trials, best)
    return cells, figure(cells, best.name)


COMPARISON = ExploratoryAnalysis(
    "Theories of participants",
    "Maximum-likelihood parameters, assuming that all participants are alike; the smallest AIC first. Lapse: "
    "probability of a response other than the participant's own label. Slope and threshold (heatmap reader): log-odds "
    "per unit of relevance, and the relevance that is neutral; relevance is the share of the heatmap's evidence on the "
    "object. Weight (Bayesian learner): share of the examples' effect on the ideal learner that participants learn. "
    "Absence (inattentive): share of trials with a random key press.",
    lambda study: (comparison(study.once(_rank)), None),
    asks_prediction_of_trials,
)
OVERLAY = ExploratoryAnalysis(
    "Participants and the best theory",
    "Share of correct responses in each cell: of participants, and predicted by the theory with the smallest AIC.",
    _overlay_best,
    asks_prediction_of_trials,
)
