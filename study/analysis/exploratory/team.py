"""Team accuracy: the AI decides alone where it is confident, and participants decide where it is not.

Above a threshold of its confidence the AI's label counts; below it, what the participant decided (Nguyen, Taesiri &
Nguyen, 2022, arXiv:2208.00780). At a threshold of 0 the AI decides everything, above 1 the participant does. The
threshold with the highest accuracy is chosen on the same responses and therefore looks too good: its accuracy is
measured with the threshold that the other participants of the condition would have chosen.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from core.errors import ForetellError
from study import plots
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, with_figure
from study.analysis.responses import accuracies
from study.conditions import format_condition

Floats = NDArray[np.float64]
TASKS = ("accept_reject", "agreement", "reliance", "reliance_one_step")
"""Those whose correct responses agree with the true class, so that a team of AI and participant can be right."""
CONFIDENCE = "ai_probability"
MOST = 20
"""Thresholds between the AI's lowest and highest confidence."""
NEVER = 1.01
"""Above every confidence."""


def tabulate(frame: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Tabulate the accuracy of the team by condition and threshold.

    Parameters
    ----------
    frame
        One row per response: participant, condition, trial_type, correct and ``ai_probability``.

    Returns
    -------
    pandas.DataFrame
        condition, threshold (from 0, the AI alone, to above 1, the participant alone), alone (share of responses that
        the AI decides), participants, `responses`, accuracy, low, high (over participants).
    """
    thresholds = list_thresholds(frame[CONFIDENCE].to_numpy(np.float64))
    rows = []
    for name, right, given, alone in _count_each(frame, thresholds):
        share, low, high = accuracies.compute_intervals(right, given, level)
        people, responses = len(right), int(given[:, 0].sum())
        rows += [
            (name, float(t), float(alone[k]), people, responses, float(share[k]), float(low[k]), float(high[k]))
            for k, t in enumerate(thresholds)
        ]
    names = ["condition", "threshold", "alone", "participants", "responses", "accuracy", "low", "high"]
    return pd.DataFrame(rows, columns=names)


def list_thresholds(confidence: Floats) -> Floats:
    """List thresholds: 0, quantiles of the AI's confidence, and one above all."""
    inner = np.unique(np.quantile(confidence, np.linspace(0, 1, MOST), method="inverted_cdf"))
    return np.array([0.0, *inner[inner > 0], NEVER])


def _count_each(frame: pd.DataFrame, thresholds: Floats) -> Iterator[tuple[str, Floats, Floats, Floats]]:
    """Count of each condition the team's correct and all responses (participants, thresholds), and the AI's share."""
    ai_right = (frame["trial_type"] == "std_correct").to_numpy(np.float64)
    human, sure = frame["correct"].to_numpy(np.float64), frame[CONFIDENCE].to_numpy(np.float64)
    decides = sure[:, None] >= thresholds
    team = np.where(decides, ai_right[:, None], human[:, None])
    for name in accuracies.order(frame):
        own = (frame["condition"] == name).to_numpy()
        people, _ = pd.factorize(frame.loc[own, "participant"])
        right = np.zeros((people.max() + 1, len(thresholds)))
        np.add.at(right, people, team[own])
        given = np.repeat(np.bincount(people)[:, None].astype(np.float64), len(thresholds), axis=1)
        yield name, right, given, decides[own].mean(axis=0)


def choose(right: Floats, given: Floats) -> tuple[int, float]:
    """Choose the threshold with the highest accuracy, and measure it by leaving out each participant in turn.

    Parameters
    ----------
    right, given
        The team's correct and all responses (participants, thresholds).

    Returns
    -------
    tuple
        The place of the threshold chosen by all participants; and the accuracy of each participant's responses at the
        threshold that the others would have chosen. NaN of one participant.
    """
    best = int(np.argmax(right.sum(axis=0) / given.sum(axis=0)))
    if len(right) < 2:
        return best, float("nan")
    others = (right.sum(axis=0) - right) / (given.sum(axis=0) - given)
    theirs = np.argmax(others, axis=1)
    rows = np.arange(len(right))
    return best, float(right[rows, theirs].sum() / given[rows, theirs].sum())


def describe(frame: pd.DataFrame) -> str:
    """Say for each condition which threshold is best, its accuracy, and those of the AI and participants alone."""
    thresholds, said = list_thresholds(frame[CONFIDENCE].to_numpy(np.float64)), []
    for name, right, given, _ in _count_each(frame, thresholds):
        best, accuracy = choose(right, given)
        ends = (right.sum(axis=0) / given.sum(axis=0))[[0, -1]]
        alone = f"(the AI alone {ends[0]:.1%}, participants alone {ends[1]:.1%})"
        if best == 0:
            where = "best where the AI decides everything"
        elif best == len(thresholds) - 1:
            where = "best where participants decide everything"
        else:
            where = f"{accuracy:.1%} where the AI decides alone from a confidence of {thresholds[best]:.2f}"
        said.append(f"{format_condition(name)}: {where} {alone}.")
    return " ".join(said)


def figure(table: pd.DataFrame) -> go.Figure:
    """Plot the accuracy of the team by threshold, a line for each condition, from `tabulate`."""
    return plots.curves(
        table,
        x="threshold",
        y="accuracy",
        by="condition",
        title="Correct decisions",
        x_title="The AI decides alone from this confidence",
    )


def _join(study: AnalysedStudy) -> pd.DataFrame:
    """Add the AI's confidence to the responses.

    Raises
    ------
    ForetellError
        Some responses have none.
    """
    if study.trials:
        known = {name: trial.ai_probability for name, trial in study.trials.items()}
    else:
        values = study.data.covariates[["item", CONFIDENCE]].drop_duplicates("item").set_index("item")[CONFIDENCE]
        known = pd.to_numeric(values, errors="coerce").to_dict()
    joined = study.frame.assign(**{CONFIDENCE: study.frame["item"].map(known).astype(np.float64)})
    if (absent := int(joined[CONFIDENCE].isna().sum())) or joined[CONFIDENCE].nunique() < 2:
        raise ForetellError(
            f"Team accuracy needs the AI's confidence, and {absent:,} of {len(joined):,} responses have none."
            if absent
            else "Team accuracy needs trials that differ in the AI's confidence, and here all have the same."
        )
    return joined


def _applies(study: AnalysedStudy) -> bool:
    is_known = "item" in study.frame and (bool(study.trials) or CONFIDENCE in study.data.covariates)
    return is_known and study.data.task.name in TASKS


ANALYSIS = ExploratoryAnalysis(
    "Team accuracy: who decides",
    "From a threshold of its confidence on, the AI decides alone; below it, the participant. At 0 the AI decides "
    "everything, above 1 participants do. The study's trials are chosen by type, so that the AI is right less or more "
    "often than on all images: compare conditions, and not the team with other studies. 95% intervals over "
    "participants. Each accuracy in the sentence is with the threshold that the other participants would have chosen.",
    lambda study: with_figure(tabulate(study.once(_join)), figure),
    needs=_applies,
    conclude=lambda study, _: describe(study.once(_join)),
)
