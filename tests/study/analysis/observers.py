"""Simulated observers by the definitions of signal detection, the diffusion model and the ex-Gaussian distribution."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from study.bundle import TRIAL_TYPES

CRITERIA = (0.4, 0.9, 1.5)
"""Of confidence, from the criterion of the response."""
CRITERION = 0.2
OVERSHOOT = 0.5826
"""Mean of how far a walk of normal steps goes beyond a boundary, in SDs of a step (Siegmund, 1985)."""


def rate(
    seed: int, noise: Mapping[str, float], *, people: int = 20, trials: int = 60, dprime: float = 1.5
) -> pd.DataFrame:
    """Observers whose confidence is from the evidence of the response and `noise` (SD), by condition.

    They say "wrong" where the evidence exceeds `CRITERION`. Without noise, meta-d' is d'.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for person, condition in enumerate(np.repeat(list(noise), people)):
        kinds = np.resize(TRIAL_TYPES, trials)
        signal = kinds != "std_correct"
        evidence = rng.normal(size=trials) + dprime * (signal - 0.5)
        said = evidence > CRITERION
        felt = evidence + rng.normal(0, 1, trials) * noise[condition]
        away = np.where(said, felt - CRITERION, CRITERION - felt)
        sure = np.digitize(away, CRITERIA) / len(CRITERIA)
        rows.append(
            pd.DataFrame(
                {
                    "participant": f"p{person:03d}",
                    "condition": condition,
                    "trial_type": kinds,
                    "correct": (said == signal).astype(int),
                    "confidence": sure,
                }
            )
        )
    return pd.concat(rows, ignore_index=True)


def decide(
    rng: np.random.Generator, drift: float, boundary: float, other_s: float, trials: int, step_s: float = 0.002
) -> tuple[np.ndarray, np.ndarray]:
    """Walk from the middle to one of two boundaries: whether it was the upper one, and the time in seconds."""
    half = boundary / 2 - OVERSHOOT * np.sqrt(step_s)
    place, time, live = np.zeros(trials), np.zeros(trials), np.arange(trials)
    while len(live):
        place[live] += drift * step_s + rng.normal(0, np.sqrt(step_s), len(live))
        time[live] += step_s
        live = live[np.abs(place[live]) < half]
    return (place > 0).astype(int), time + other_s


def hurry(
    seed: int, parameters: Mapping[str, tuple[float, float, float]], *, people: int = 20, trials: int = 60
) -> pd.DataFrame:
    """Observers with the drift rate, boundary and non-decision time of their condition; wrong trials half the drift."""
    rng = np.random.default_rng(seed)
    rows = []
    for person, condition in enumerate(np.repeat(list(parameters), people)):
        drift, boundary, other = parameters[condition]
        for kind, share in (("std_correct", 1.0), ("std_incorrect", 0.5)):
            correct, seconds = decide(rng, share * drift, boundary, other, trials // 2)
            told = {"participant": f"p{person:03d}", "condition": condition, "trial_type": kind}
            rows.append(pd.DataFrame({**told, "correct": correct, "rt_ms": 1000 * seconds}))
    return pd.concat(rows, ignore_index=True)


def draw_tails(
    seed: int, parameters: Mapping[str, tuple[float, float, float]], *, people: int = 20, trials: int = 60
) -> pd.DataFrame:
    """Observers whose times (s) are a normal draw (mu, sigma) and an exponential one (tau), by condition."""
    rng = np.random.default_rng(seed)
    rows = []
    for person, condition in enumerate(np.repeat(list(parameters), people)):
        mu, sigma, tau = parameters[condition]
        seconds = rng.normal(mu, sigma, trials) + rng.exponential(tau, trials)
        kinds = np.resize(["std_correct", "std_incorrect"], trials)
        correct = (rng.random(trials) < 0.9).astype(int)
        told = {"participant": f"p{person:03d}", "condition": condition, "trial_type": kinds}
        rows.append(pd.DataFrame({**told, "correct": correct, "rt_ms": 1000 * seconds}))
    return pd.concat(rows, ignore_index=True)
