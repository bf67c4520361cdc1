"""Bayes factors of contrasts for a stated prior, by the normal approximation of the likelihood.

Under the alternative a difference in log-odds is N(0, s^2), with s stated by the analyst as the size of effect that is
plausible (Dienes, 2014, doi:10.3389/fpsyg.2014.00781); under the null it is 0. The estimate is N(difference, se^2). By
the ratio of Savage and Dickey (Dickey & Lientz, 1970, doi:10.1214/aoms/1177697203) the posterior over the prior density
at 0 is

    BF01 = sqrt(1 + s^2 / se^2) exp(-z^2 / 2 * s^2 / (s^2 + se^2)),  z = estimate / se.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.errors import ForetellError
from study.analysis.models.records import Floats

SENSITIVITY = (0.5, 1.0, 2.0)
"""Multiples of the stated prior standard deviation for which Bayes factors are tabulated."""
PREFIX = "bf01_"


def compute_log_bf01(estimate: Floats, se: Floats, prior_sd: float) -> Floats:
    """Compute the natural logarithm (m,) of the Bayes factor for a difference of 0; NaN without a standard error."""
    known = np.where(se > 0, se, np.nan)
    ratio = (prior_sd / known) ** 2
    return np.asarray(0.5 * np.log1p(ratio) - 0.5 * (estimate / known) ** 2 * ratio / (1 + ratio))


def check_prior_sd(prior_sd: float) -> float:
    """Return the standard deviation of a prior, if it is one.

    Raises
    ------
    ForetellError
        No number above 0.
    """
    if not 0 < prior_sd < np.inf:
        raise ForetellError(f"The prior SD {prior_sd:g} of Bayes factors must be a number above 0, such as 0.5.")
    return prior_sd


def tabulate(contrasts: pd.DataFrame, prior_sd: float) -> pd.DataFrame:
    """Tabulate Bayes factors for no difference, of contrasts on the link scale with estimate and se.

    Returns
    -------
    pandas.DataFrame
        The columns up to contrast, estimate, se, and ``bf01_S`` for priors of half, once and twice the stated standard
        deviation S.
    """
    names = [str(name) for name in contrasts.columns]
    table = contrasts[[*names[: names.index("contrast") + 1], "estimate", "se"]].copy()
    estimate, se = (table[name].to_numpy(np.float64) for name in ("estimate", "se"))
    for multiple in SENSITIVITY:
        with np.errstate(over="ignore"):
            table[f"{PREFIX}{multiple * prior_sd:g}"] = np.exp(compute_log_bf01(estimate, se, multiple * prior_sd))
    return table


def explain(prior_sd: float, unit: str = "log-odds") -> str:
    """Explain the table of Bayes factors; ``unit`` is that of the differences."""
    return (
        f"BF₀₁: how many times more likely the estimate is if there is no difference than under the prior, a normal "
        f"distribution of the difference ({unit}) with mean 0 and the stated SD of {prior_sd:g}; half and twice that "
        "SD show how much it matters. Above 1 favours no difference. An approximation: the likelihood is taken as "
        "normal around the estimate, whatever its degrees of freedom, and the variances as known."
    )
