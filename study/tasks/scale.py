"""Levels that simulated participants choose where no response is right or wrong: a latent rating between thresholds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RatingScale:
    """A cumulative logit model: a level is how far a latent rating with logistic error gets.

    Attributes
    ----------
    values
        The levels, the lowest first.
    thresholds
        Log-odds between neighbouring levels, ascending: P(level > values[k]) = expit(log-odds - thresholds[k]).
    """

    values: tuple[int, ...]
    thresholds: tuple[float, ...]

    def choose(self, p: Floats, drawn: Floats) -> NDArray[np.int64]:
        """Choose levels (...): ``p`` is the probability of a latent rating above 0, ``drawn`` uniform in [0, 1)."""
        with np.errstate(divide="ignore"):  # a draw of 0 is the lowest level
            latent = logit(p) + logit(drawn)
        passed = (latent[..., None] > np.array(self.thresholds)).sum(axis=-1)
        return np.asarray(np.array(self.values)[passed], dtype=np.int64)

    def compute_mean(self, p: Floats) -> Floats:
        """Compute the mean level (...) of a participant whose latent rating is above 0 with probability ``p``."""
        above = expit(logit(p)[..., None] - np.array(self.thresholds))
        return np.asarray(self.values[0] + above @ np.diff(self.values), dtype=np.float64)


def make_even_scale(count: int) -> RatingScale:
    """Make a scale of so many levels with thresholds one apart around 0: of 5 levels -1.5, -0.5, 0.5, 1.5."""
    return RatingScale(tuple(range(1, count + 1)), tuple(k - count / 2 for k in range(1, count)))
