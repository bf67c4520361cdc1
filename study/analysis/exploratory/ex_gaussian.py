"""The shape of response times: the ex-Gaussian distribution, a normal part and an exponential tail.

Maximum likelihood for each participant, correct responses or not (Ratcliff, 1979, doi:10.1037/0033-2909.86.3.446;
Heathcote, Popiel & Mewhort, 1991, doi:10.1037/0033-2909.109.2.340). A condition may slow all responses (mu) or make
some of them very slow (tau), which means cannot tell apart.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.optimize import minimize
from scipy.special import log_ndtr
from scipy.stats import skew

from core.errors import ForetellError
from study import plots
from study.analysis.exploratory import groups, speed
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, has_times, with_figure
from study.analysis.models.records import Floats
from study.analysis.words.headings import EX_GAUSSIAN_MEASURES, format_heading

FEWEST = 20
"""Fewest responses of a participant for three parameters."""


def fit(times: Floats) -> tuple[float, float, float]:
    """Estimate mu, sigma and tau of times (n,), in their unit: those of the normal part, and the mean of the tail."""
    spread = float(times.std(ddof=1))
    tail = spread * (np.clip(skew(times), 0.05, 1.9) / 2) ** (1 / 3)  # moments, where they allow it
    start = np.array([times.mean() - tail, np.log(np.sqrt(max(spread**2 - tail**2, 0.01 * spread**2))), np.log(tail)])

    def loss(free: Floats) -> float:
        return -compute_loglik(times, float(free[0]), *np.exp(np.clip(free[1:], -9, 9)))

    best = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-4, "maxiter": 2000})
    return float(best.x[0]), float(np.exp(best.x[1])), float(np.exp(best.x[2]))


def compute_loglik(times: Floats, mu: float, sigma: float, tau: float) -> float:
    """Compute the log-likelihood of independent times (n,)."""
    away, ratio = times - mu, sigma / tau
    logs = log_ndtr(away / sigma - ratio) - away / tau
    return float(logs.sum()) + len(times) * (ratio**2 / 2 - math.log(tau))


def estimate_participants(frame: pd.DataFrame) -> pd.DataFrame:
    """Estimate each participant's parameters: participant, condition and `EX_GAUSSIAN_MEASURES`, in seconds.

    Raises
    ------
    ForetellError
        There are no response times, or too few of every participant.
    """
    timed = speed.select_timed(frame)
    rows = [
        (participant, condition, *fit(own["rt_ms"].to_numpy(np.float64) / 1000))
        for (participant, condition), own in timed.groupby(["participant", "condition"], observed=True)
        if len(own) >= FEWEST and own["rt_ms"].nunique() > 2
    ]
    if not rows:
        raise ForetellError(f"No participant has {FEWEST} responses with a time in a condition.")
    return pd.DataFrame(rows, columns=["participant", "condition", *EX_GAUSSIAN_MEASURES])


def conditions(made: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Tabulate condition, participants, and `EX_GAUSSIAN_MEASURES` with their limits, of `estimate_participants`."""
    return pd.DataFrame(
        [
            {"condition": name, "participants": one["mu_s"].people, **groups.write_row(one, level)}
            for name, one in groups.average_each(made, EX_GAUSSIAN_MEASURES).items()
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
    return groups.compare([({}, groups.average_each(made, EX_GAUSSIAN_MEASURES))], level)


def figure(table: pd.DataFrame) -> go.Figure:
    """Plot mu and tau by condition, from `conditions`."""
    parts = [
        table[["condition"]].assign(
            part=format_heading(name), value=table[name], low=table[f"{name}_low"], high=table[f"{name}_high"]
        )
        for name in ("mu_s", "tau_s")
    ]
    return plots.intervals(pd.concat(parts), x="condition", y="value", by="part", title="Seconds")


def _estimate(study: AnalysedStudy) -> pd.DataFrame:
    return estimate_participants(study.frame)


BY_CONDITION = ExploratoryAnalysis(
    "Response times: normal part and tail",
    "Ex-Gaussian distribution of each participant's times, averaged; 95% intervals over participants. Mu "
    "and sigma: mean and SD of the normal part. Tau: mean of the exponential tail of slow responses. The mean response "
    f"time is mu + tau. Participants with fewer than {FEWEST} responses are left out.",
    lambda study: with_figure(conditions(study.once(_estimate)), figure),
    needs=has_times,
)
DIFFERENCES = ExploratoryAnalysis(
    "Normal part and tail: differences between conditions",
    groups.READING,
    lambda study: (differences(study.once(_estimate)), None),
    needs=has_times,
    conclude=lambda study, table: groups.conclude(table, study.level),
)
