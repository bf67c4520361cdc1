"""Limits of the noise's strength: none, or all, is refused before any pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from core.errors import ForetellError
from core.parameters import list_parameters


def refuse_rate(rate: float) -> None:
    """Return a probability of dropping between 0, which drops nothing, and 1, or raise an error."""
    if not 0 < rate < 1:
        raise ForetellError(f"rate={rate} is out of range: choose a probability above 0 and below 1.")


def refuse_variance(variance: float) -> None:
    """Return a variance above 0, or raise an error."""
    if not (math.isfinite(variance) and variance > 0):
        raise ForetellError(f"variance={variance} gives no noise: choose a number above 0.")


def refuse_last(last: int) -> None:
    """Return a number of layers, 0 for all, or raise an error."""
    if last < 0:
        raise ForetellError(f"last={last} is not a number of layers: choose 0 for all, or more.")


REFUSALS: Mapping[str, Callable[[Any], None]] = {
    "rate": refuse_rate,
    "variance": refuse_variance,
    "last": refuse_last,
}


def refuse_strengths(sampler: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Refuse parameters of a sampler that are no noise; its own defaults are allowed, whatever they mean."""
    defaults = {parameter.name: parameter.default for parameter in list_parameters(sampler)}
    for name, value in given.items():
        if name in REFUSALS and value != defaults[name]:
            REFUSALS[name](value)
