"""A share of images, with its confidence interval."""

from __future__ import annotations

from typing import NamedTuple

from scipy.stats import binomtest


class Share(NamedTuple):
    """A share, and the limits of its 95 % interval (Wilson 1927)."""

    value: float
    low: float
    high: float


def share_of(chosen: int, among: int) -> Share:
    """Return ``chosen`` images of ``among``, which are at least one."""
    limits = binomtest(chosen, among).proportion_ci(method="wilson")
    return Share(chosen / among, float(limits.low), float(limits.high))
