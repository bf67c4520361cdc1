"""Mean level by condition and trial type, with intervals over participants, where no response is right or wrong.

As of accuracies, participants are what varies: the variance of a mean level is that of a ratio over participants,
linearised (Cochran, 1977, ch. 2 and 6), with the quantile of Student's t with a degree of freedom less than there are
participants. Limits stay on the scale.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from study.analysis.responses import accuracies
from study.analysis.responses.outcome import LEVEL, find_outcome
from study.analysis.responses.reading import Responses
from study.bundle import TRIAL_TYPES


def tabulate_outcomes(data: Responses) -> pd.DataFrame:
    """Tabulate the numbers of Figure 1: accuracies, or mean levels where no response is right or wrong."""
    if find_outcome(data.frame).is_scored:
        return accuracies.accuracy(data.frame)
    return tabulate_ratings(data.frame, data.task.count)


def tabulate_ratings(frame: pd.DataFrame, count: int, *, level: float = 0.95) -> pd.DataFrame:
    """Tabulate condition, trial_type, participants, `responses`, mean_level, low, high.

    Parameters
    ----------
    frame
        Responses as prepared by `study.analysis.responses.reading`.
    count
        Number of levels of the scale.
    level
        Coverage of the intervals; a single participant has none.
    """
    rows = []
    for condition in accuracies.order(frame):
        own = frame[frame["condition"] == condition]
        types = [kind for kind in TRIAL_TYPES if (own["trial_type"] == kind).any()]
        sums, sizes = accuracies.count_by_participant(own, "trial_type", LEVEL.column)
        total, responses = (table[types].to_numpy() for table in (sums, sizes))
        mean, *limits = accuracies.compute_mean_intervals(total, responses, level)
        low, high = (np.clip(limit, 1, count) for limit in limits)
        people = (responses > 0).sum(axis=0)
        counts = zip(types, people, responses.sum(axis=0).astype(int), mean, low, high, strict=True)
        rows += [(condition, *values) for values in counts]
    columns = ["condition", "trial_type", "participants", "responses", "mean_level", "low", "high"]
    return pd.DataFrame(rows, columns=columns)
