"""A participant's ability in the Rasch model: P(correct) = expit(ability - difficulty), with a normal prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from study.bundle import Trial, significant
from study.plan.adaptive import OF_POLICY, Adaptive

WIDTH, POINTS = 6.0, 601
"""The grid: so many prior SDs to each side, and its points."""


@dataclass(frozen=True)
class PastTrial:
    """A trial that a participant responded to, and whether the response was correct."""

    trial: Trial
    right: bool


def read_score(adaptive: Adaptive, trial: Trial) -> float:
    """Return the difficulty of a trial in log-odds."""
    spread = adaptive.spread or OF_POLICY["information"]["spread"]
    return 0.0 if trial.difficulty is None else float(spread * trial.difficulty.score)


def estimate_ability(adaptive: Adaptive, history: Sequence[PastTrial]) -> tuple[float, float]:
    """Return mean and SD of the posterior of a participant's ability after their responses, log-odds."""
    return trace_ability(adaptive, history)[-1]


def trace_ability(adaptive: Adaptive, history: Sequence[PastTrial]) -> list[tuple[float, float]]:
    """Return mean and SD of the posterior before the first response and after each, to six significant digits.

    Rounded, so that no choice depends on the last bit of a sum. A staircase has the default prior of ``information``.
    """
    default = OF_POLICY["information"]
    mean = default["prior_mean"] if adaptive.prior_mean is None else adaptive.prior_mean
    z = np.linspace(-WIDTH, WIDTH, POINTS)
    ability = mean + (adaptive.prior_sd or default["prior_sd"]) * z
    difficulty = np.array([read_score(adaptive, one.trial) for one in history])
    signs = np.array([1.0 if one.right else -1.0 for one in history])
    each = -np.logaddexp(0.0, -signs * (ability[:, None] - difficulty))  # without SciPy: the server starts sooner
    logs = np.column_stack([-(z**2) / 2, each]).cumsum(axis=1)
    weights = np.exp(logs - logs.max(axis=0))
    weights /= weights.sum(axis=0)
    centres = ability @ weights
    spreads = np.sqrt(((ability[:, None] - centres) ** 2 * weights).sum(axis=0))
    return [(significant(a), significant(b)) for a, b in zip(centres, spreads, strict=True)]
