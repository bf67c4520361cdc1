"""Response times and accuracy together: the parameters of a diffusion model, in closed form.

In the EZ-diffusion model (Wagenmakers, van der Maas & Grasman, 2007, doi:10.3758/BF03194023) evidence drifts at a rate
towards the correct option, with noise of variance 1 a second, until it has gone half the boundary in either direction.
The rest of the response time is not part of the decision. Accuracy and the mean and variance of a participant's times
give drift rate, boundary and non-decision time exactly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.special import expit, logit

from core.errors import ForetellError
from study import plots
from study.analysis.exploratory import groups, speed
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, has_times, with_figure
from study.analysis.exploratory.groups import Estimate
from study.analysis.exploratory.ordinal import KINDS
from study.analysis.words.headings import DIFFUSION_MEASURES, format_heading

FEWEST = 10
"""Fewest responses of a participant in a group of trials, half of which have the times that are used."""


def compute_parameters(accuracy: float, mean: float, variance: float) -> tuple[float, float, float]:
    """Compute drift rate, boundary and non-decision time (equations 5, 7 and 9 of Wagenmakers et al.).

    Parameters
    ----------
    accuracy
        Share of correct responses, within (0, 1) and not one half.
    mean, variance
        Of the times of correct responses, or of incorrect ones: in the model both are alike. In seconds.
    """
    odds = float(logit(accuracy))
    fourth = odds * (accuracy**2 * odds - accuracy * odds + accuracy - 0.5) / variance
    drift = float(np.sign(accuracy - 0.5) * fourth**0.25)
    boundary = odds / drift
    decision = boundary / (2 * drift) * (1 - 2 * float(expit(-drift * boundary)))
    return drift, boundary, mean - decision


def correct_edges(right: int, responses: int) -> float:
    """Return the accuracy, half a response away from 0, one half and 1, where the model has no solution."""
    half = 0.5 / responses
    accuracy = min(max(right / responses, half), 1 - half)
    return accuracy + half if accuracy == 0.5 else accuracy


def estimate_participants(frame: pd.DataFrame) -> pd.DataFrame:
    """Estimate each participant's parameters: participant, condition, trials and `DIFFUSION_MEASURES`.

    Raises
    ------
    ForetellError
        There are no response times, or too few responses of every participant.
    """
    timed = _select_timed(frame)
    rows = []
    for (participant, condition, wrong), own in timed.groupby(["participant", "condition", "wrong"], observed=True):
        more = own["correct"].mean() >= 0.5  # the mirrored model has incorrect responses for correct ones
        times = own.loc[own["correct"] == int(more), "rt_ms"].to_numpy(np.float64) / 1000
        if len(own) < FEWEST or not times.var(ddof=1) > 0:
            continue
        accuracy = correct_edges(int(own["correct"].sum()), len(own))
        made = compute_parameters(accuracy, float(times.mean()), float(times.var(ddof=1)))
        rows.append((participant, condition, KINDS[wrong], *made))
    if not rows:
        raise ForetellError(
            f"No participant has {FEWEST} responses with a time to trials where the AI is right, or where it is wrong."
        )
    return pd.DataFrame(rows, columns=["participant", "condition", "trials", *DIFFUSION_MEASURES])


def _select_timed(frame: pd.DataFrame) -> pd.DataFrame:
    timed = speed.select_timed(frame)
    return timed.assign(wrong=(timed["trial_type"] != "std_correct").astype(int))


def conditions(made: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Tabulate trials, condition, participants, and `DIFFUSION_MEASURES` with limits, of `estimate_participants`."""
    return pd.DataFrame(
        [
            {**known, "condition": name, "participants": one["drift"].people, **groups.write_row(one, level)}
            for known, each in _group(made)
            for name, one in each.items()
        ]
    )


def differences(made: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Compare each condition with the first, as `groups.compare` does, from `estimate_participants`.

    Raises
    ------
    ForetellError
        There is one condition, or a participant was in several.
    """
    groups.check_independent(made)
    return groups.compare([group for group in _group(made) if len(group[1]) > 1], level)


def _group(made: pd.DataFrame) -> Iterator[tuple[dict[str, object], dict[str, dict[str, Estimate]]]]:
    """Average over the participants of each group of trials and condition, the first condition first."""
    for trials in KINDS:
        if each := groups.average_each(made[made["trials"] == trials], DIFFUSION_MEASURES):
            yield {"trials": trials}, each


def describe_errors(frame: pd.DataFrame) -> str:
    """Say whether incorrect responses take longer than correct ones, which the model does not know."""
    timed = _select_timed(frame)
    means = timed.assign(log=np.log(timed["rt_ms"])).groupby(["participant", "wrong", "correct"])["log"].mean()
    apart = means.unstack("correct").dropna()
    if apart.shape[1] < 2 or len(apart) < 2:
        return ""
    by_person = (apart[0] - apart[1]).groupby("participant").mean().to_numpy()
    one = groups.average(by_person)
    low, high = one.limit(0.95)
    if low <= 0 <= high:
        return ""
    way = "longer" if one.value > 0 else "less long"
    return (
        f" Here incorrect responses take {abs(np.expm1(one.value)):.0%} {way} than correct ones, which the model does "
        "not know: read boundary and non-decision time with care."
    )


def figure(table: pd.DataFrame) -> go.Figure:
    """Plot the drift rate by condition, from `conditions`; below 0 evidence leads to the incorrect option."""
    points = table.assign(low=table["drift_low"], high=table["drift_high"])
    return plots.intervals(points, x="condition", y="drift", by="trials", title=format_heading("drift"), line=0.0)


def _applies(study: AnalysedStudy) -> bool:
    return has_times(study) and study.data.task.count == 2 and study.data.task.steps == 1


def _estimate(study: AnalysedStudy) -> pd.DataFrame:
    return estimate_participants(study.frame)


_READING = (
    "EZ-diffusion model (Wagenmakers et al., 2007) of each participant, averaged; 95% intervals over participants. "
    "Drift rate: how fast evidence leads to the correct option, below 0 to the incorrect one. Boundary: how much "
    "evidence is awaited; higher is more cautious. Non-decision time, in seconds: seeing and pressing. The model is of "
    "quick decisions by one process. It takes the times of the correct responses, or of the incorrect ones where a "
    f"participant has more of those. Participants with fewer than {FEWEST} responses to such trials are left out."
)
BY_CONDITION = ExploratoryAnalysis(
    "Response times and accuracy: diffusion model",
    lambda study: f"{_READING}{describe_errors(study.frame)}",
    lambda study: with_figure(conditions(study.once(_estimate)), figure),
    needs=_applies,
    is_of_predictions=True,
)
DIFFERENCES = ExploratoryAnalysis(
    "Diffusion model: differences between conditions",
    groups.READING,
    lambda study: (differences(study.once(_estimate)), None),
    needs=_applies,
    conclude=lambda study, table: groups.conclude(table, study.level),
    is_of_predictions=True,
)
