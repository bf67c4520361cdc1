"""``[analysis.means]``: the estimated means that a plan asks for, with the contrasts between them."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

FACTORS = ("trial_type", "saliency", "examples")


class PlannedMeans(BaseModel):
    """``[analysis.means]``.

    Each of ``of`` is a factor, or several, ``saliency * examples``, with a mean for each combination of their levels;
    after a bar, ``saliency * examples | trial_type``, those within which contrasts are made and corrected.
    ``contrasts`` are ``pairwise``, ``reference`` (each against the first), ``b - a``, or weights,
    ``b=1, a=-1/2, c=-1/2``. ``adjust`` is their correction: ``holm``, ``tukey`` (of pairs), ``mvt`` (max-t,
    simultaneous) or ``none``. ``scale`` is ``population`` (accuracy averaged over the random effects, or mean level),
    ``response`` (at random effects of 0) or ``link`` (log-odds).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    of: tuple[str, ...] = ()
    contrasts: tuple[str, ...] = ("pairwise",)
    adjust: Literal["holm", "tukey", "mvt", "none"] = "holm"
    scale: Literal["population", "response", "link"] = "population"

    @model_validator(mode="after")
    def _check_factors(self) -> Self:
        for text in self.of:
            names = list_factors(text)
            if text.count("|") > 1 or not set(names) <= set(FACTORS) or len(set(names)) < len(names):
                raise ValueError(
                    f"the means {text!r} cannot be read: name each of {', '.join(FACTORS)} at most once, as in "
                    "'saliency * examples | trial_type'."
                )
        if self.adjust == "tukey" and self.contrasts != ("pairwise",):
            raise ValueError('tukey corrects all pairs: set contrasts = ["pairwise"], or another correction.')
        return self


def list_factors(text: str) -> list[str]:
    """List the factors of means: of ``"saliency * examples | trial_type"`` these three."""
    return [part.strip() for part in re.split(r"[*:|]", text)]


def is_empty(means: object) -> bool:
    """Tell whether a plan asks for no means."""
    return isinstance(means, PlannedMeans) and not means.of
