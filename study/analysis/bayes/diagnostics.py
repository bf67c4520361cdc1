"""Whether draws from a posterior are to be believed.

R-hat and effective draws of rank-normalised, split chains: Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021),
doi:10.1214/20-BA1221, whose limits of 1.01 and of 100 effective draws a chain are taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from study.analysis.models.records import Floats

MOST_RHAT = 1.01
FEWEST_EFFECTIVE = 400
TAILS = (0.025, 0.975)
"""The limits of the intervals, whose effective draws are counted too."""


@dataclass(frozen=True)
class Diagnostics:
    """The worst of all parameters.

    Attributes
    ----------
    rhat
        Largest R-hat.
    effective
        Fewest effective draws, in bulk and at the limits of the intervals.
    divergences
        Of all chains, after warm-up.
    draws
        In all.
    """

    rhat: float
    effective: float
    divergences: int
    draws: int

    @property
    def is_reliable(self) -> bool:
        """Whether the numbers of the fit are to be believed."""
        return not self._list_faults()

    def describe(self) -> str:
        """Say whether the fit is to be believed, and if not, why and what to do."""
        faults = self._list_faults()
        if not faults:
            return (
                f"The fit can be believed: R-hat at most {self.rhat:.3f}, at least {_round(self.effective):,} "
                f"effective draws of {self.draws:,}, no divergences."
            )
        causes, remedies = zip(*faults, strict=True)
        asked = ", and ".join(dict.fromkeys(remedies))
        return f"Do not believe this fit: {'; '.join(causes)}. Remedy: {asked}."

    def _list_faults(self) -> list[tuple[str, str]]:
        """List what is wrong, each with its remedy."""
        faults = []
        more = "take more draws"
        if not self.rhat <= MOST_RHAT:
            faults.append((f"the chains disagree (R-hat up to {self.rhat:.3f}, at most {MOST_RHAT} is needed)", more))
        if not self.effective >= FEWEST_EFFECTIVE:
            few = f"too few effective draws ({_round(self.effective):,}, at least {FEWEST_EFFECTIVE} are needed)"
            faults.append((few, more))
        if self.divergences:
            lost = f"{self.divergences:,} divergence{'s' if self.divergences > 1 else ''} of {self.draws:,} draws"
            faults.append((lost, "state stronger priors or leave out random slopes"))
        return faults


def _round(effective: float) -> int:
    """Round down to two digits, which is as well as effective draws are known."""
    if not effective >= 1:
        return 0
    unit = 10 ** max(0, int(np.log10(effective)) - 1)
    return int(effective // unit * unit)


def compute_rhat(draws: Floats) -> float:
    """Compute R-hat of one parameter's draws (c, d): the larger of location (ranks) and spread (folded ranks)."""
    from numpyro.diagnostics import gelman_rubin

    folded = np.abs(draws - np.median(draws))
    return max(float(gelman_rubin(_normalise_ranks(split_chains(values)))) for values in (draws, folded))


def compute_effective(draws: Floats) -> tuple[float, float]:
    """Compute the effective draws of one parameter (c, d), in bulk and the fewer at the limits of its interval."""
    from numpyro.diagnostics import effective_sample_size

    bulk = float(effective_sample_size(_normalise_ranks(split_chains(draws))))
    limits = [draws <= np.quantile(draws, share) for share in TAILS]
    tails = [float(effective_sample_size(split_chains(below.astype(np.float64)))) for below in limits]
    return bulk, min(tails)


def split_chains(draws: Floats) -> Floats:
    """Return (2c, d // 2) halves of chains (c, d): one that drifts disagrees with itself."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normalise_ranks(draws: Floats) -> Floats:
    """Return normal scores of the ranks, for which no posterior needs a mean or a variance (Blom, 1958)."""
    ranks = rankdata(draws).reshape(draws.shape)
    return np.asarray(ndtri((ranks - 0.375) / (draws.size + 0.25)), dtype=np.float64)
