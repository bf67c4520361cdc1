"""Mean accuracy by condition and trial type with bootstrapped confidence intervals.

Participants are resampled, not responses: those of one participant are correlated, and resampling them would give too
narrow intervals. Within each condition as many participants are drawn, with replacement, as took part; the interval is
that of the percentiles (Efron & Tibshirani, 1993, ch. 13).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.errors import ForetellError
from study.analysis.responses import CONDITION_OF_FACTORS
from study.bundle import TRIAL_TYPES

RESAMPLES = 10_000
_CHUNK = 2_000_000
"""Counts held in memory at once: resamples x participants."""


def accuracy(
    frame: pd.DataFrame,
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return the mean accuracy of each condition and trial type with its confidence interval.

    Parameters
    ----------
    frame
        Responses as prepared by `study.analysis.responses`: participant, condition, trial_type, correct.
    resamples
        Bootstrap samples per condition.
    level
        Coverage of the interval, a probability.

    Returns
    -------
    pandas.DataFrame
        condition, trial_type, participants, `responses`, accuracy, low, high (all three proportions of responses).

    Raises
    ------
    ForetellError
        `level` is no probability or `resamples` is not positive.
    """
    if not 0 < level < 1 or resamples < 1:
        raise ForetellError(f"The bootstrap needs a level in (0, 1) and resamples > 0, not {level} and {resamples}.")
    rows = [
        row
        for condition in order(frame)
        for row in _condition(frame[frame["condition"] == condition], condition, rng, resamples, level)
    ]
    return pd.DataFrame(rows)


def order(frame: pd.DataFrame) -> list[str]:
    """Return conditions present, the four of the design first."""
    present = set(frame["condition"])
    designed = [name for name in CONDITION_OF_FACTORS.values() if name in present]
    return designed + sorted(present - set(designed))


def _condition(
    frame: pd.DataFrame, condition: str, rng: np.random.Generator, resamples: int, level: float
) -> list[dict[str, object]]:
    types = [t for t in TRIAL_TYPES if (frame["trial_type"] == t).any()]
    by_person = frame.groupby(["participant", "trial_type"], observed=True)["correct"]
    right = by_person.sum().unstack("trial_type", fill_value=0)[types].to_numpy(dtype=np.float64)
    responses = by_person.size().unstack("trial_type", fill_value=0)[types].to_numpy(dtype=np.float64)
    draws = resample(right, responses, resamples, rng)
    low, high = np.nanquantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return [
        {
            "condition": condition,
            "trial_type": trial_type,
            "participants": int((responses[:, k] > 0).sum()),
            "responses": int(responses[:, k].sum()),
            "accuracy": float(right[:, k].sum() / responses[:, k].sum()),
            "low": float(low[k]),
            "high": float(high[k]),
        }
        for k, trial_type in enumerate(types)
    ]


def resample(
    right: NDArray[np.float64], responses: NDArray[np.float64], resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Resample participants: accuracies (resamples, K).

    Parameters
    ----------
    right, responses
        (P, K) correct and all responses of each of P participants in each of K cells.
    """
    people = len(right)
    share = np.full(people, 1.0 / people)
    draws = np.empty((resamples, right.shape[1]))
    chunk = max(1, _CHUNK // people)
    for start in range(0, resamples, chunk):
        size = min(chunk, resamples - start)
        times = rng.multinomial(people, share, size=size).astype(np.float64)
        given = times @ responses
        # A resample without participants who saw this cell is missing, and left out of the percentiles.
        draws[start : start + size] = np.divide(times @ right, given, out=np.full_like(given, np.nan), where=given > 0)
    return draws
