"""Mean accuracy by condition and trial type, with intervals over participants.

Responses of one participant are correlated, so participants are what varies: the variance of an accuracy is that of a
ratio over participants, linearised (Cochran, 1977, ch. 2 and 6). The interval is Wilson's with as many independent
responses as have that variance, and with the quantile of Student's t with a degree of freedom less than there are
participants (Franco, Little, Louis & Slud, 2019, doi:10.1093/jssam/smy019). It stays within 0 and 1, has a width where
all responses are correct, and covers 95% also with five or ten participants, where percentiles of resampled
participants cover 80% to 90% (`benchmarks/coverage.py`).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t

from core.errors import ForetellError
from study.analysis.responses.reading import CONDITION_OF_FACTORS
from study.bundle import EVERY_TYPE

Floats = NDArray[np.float64]


def accuracy(frame: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Return the mean accuracy of each condition and trial type with its confidence interval.

    Parameters
    ----------
    frame
        Responses as prepared by `study.analysis.responses.reading`: participant, condition, trial_type, correct.
    level
        Coverage of the interval, a probability.

    Returns
    -------
    pandas.DataFrame
        condition, trial_type, participants, `responses`, accuracy, low, high (all three proportions of responses); no
        interval of one participant.

    Raises
    ------
    ForetellError
        `level` is no probability.
    """
    if not 0 < level < 1:
        raise ForetellError(f"An interval needs a level in (0, 1), not {level}.")
    rows = [
        row
        for condition in order(frame)
        for row in _condition(frame[frame["condition"] == condition], condition, level)
    ]
    return pd.DataFrame(rows)


def order(frame: pd.DataFrame) -> list[str]:
    """Return conditions present, the four of the design first."""
    present = set(frame["condition"])
    designed = [name for name in CONDITION_OF_FACTORS.values() if name in present]
    return designed + sorted(present - set(designed))


def _condition(frame: pd.DataFrame, condition: str, level: float) -> list[dict[str, object]]:
    types = [t for t in EVERY_TYPE if (frame["trial_type"] == t).any()]
    right, responses = count_by_participant(frame, "trial_type")
    share, low, high = compute_intervals(right[types].to_numpy(), responses[types].to_numpy(), level)
    return [
        {
            "condition": condition,
            "trial_type": trial_type,
            "participants": int((responses[trial_type] > 0).sum()),
            "responses": int(responses[trial_type].sum()),
            "accuracy": float(share[k]),
            "low": float(low[k]),
            "high": float(high[k]),
        }
        for k, trial_type in enumerate(types)
    ]


def count_by_participant(frame: pd.DataFrame, by: str, outcome: str = "correct") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Count successes and all responses of each participant (a row) in each cell (a column)."""
    groups = frame.groupby(["participant", by], observed=True)[outcome]
    right, responses = (counts.unstack(by, fill_value=0).astype(np.float64) for counts in (groups.sum(), groups.size()))
    return right, responses


def compute_intervals(right: Floats, responses: Floats, level: float) -> tuple[Floats, Floats, Floats]:
    """Return the shares of successes (K,) in cells, and the limits of their intervals.

    Parameters
    ----------
    right, responses
        (P, K) successes and all responses of each of P participants in each of K cells.
    """
    total, people = responses.sum(axis=0), (responses > 0).sum(axis=0)
    share = right.sum(axis=0) / total
    variance = compute_variance((right - share * responses) / total, people)
    return share, *limit_share(share, variance, people, total, level)


def compute_mean_intervals(total: Floats, responses: Floats, level: float) -> tuple[Floats, Floats, Floats]:
    """Return the means over responses (K,) in cells, and the limits of Student's intervals over participants.

    Parameters
    ----------
    total, responses
        (P, K) sums of a measure and numbers of responses of each of P participants in each of K cells.
    """
    given, people = responses.sum(axis=0), (responses > 0).sum(axis=0)
    mean = total.sum(axis=0) / given
    variance = compute_variance((total - mean * responses) / given, people)
    half = _find_quantile(people, level) * np.sqrt(variance)
    return mean, mean - half, mean + half


def _find_quantile(people: NDArray[np.int64], level: float) -> Floats:
    """Find Student's quantile (K,) with a degree of freedom less than there are people; NaN for one."""
    return np.where(people > 1, t.ppf((1 + level) / 2, np.maximum(people - 1, 1)), np.nan)


def compute_variance(influence: Floats, people: NDArray[np.int64]) -> Floats:
    """Return the variance (K,) of a ratio or a mean of ratios from each participant's influence on it (P, K)."""
    factor = people / np.maximum(people - 1, 1)
    return np.asarray(factor * np.sum(influence**2, axis=0), dtype=np.float64)


def limit_share(
    share: Floats, variance: Floats, people: NDArray[np.int64], responses: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return the limits (K,) of Wilson's interval with as many independent responses as have a share's variance.

    Where nothing varies there is no such number: all right, or all wrong, count as one response of each participant,
    and equal participants as independent responses. One participant has no interval.
    """
    spread = share * (1 - share)
    alike = np.where(spread > 0, responses, people)
    size = np.divide(spread, variance, out=alike.astype(np.float64), where=variance > 0)
    scale = _find_quantile(people, level) ** 2 / size
    middle = (share + scale / 2) / (1 + scale)
    half = np.sqrt(scale * spread + scale**2 / 4) / (1 + scale)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
