"""What responses are analysed by: whether they are correct, or their level where none is right or wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """The column of responses that models explain, and the columns of a contrast on its own scale.

    Attributes
    ----------
    column
        Of prepared responses.
    family
        Of the mixed models, as of `study.analysis.models.mixed.fit`.
    mean
        Column of its mean where means are tabulated.
    unit
        What a difference of means is multiplied by: 100 for percentage points.
    more, less
        Columns of `study.analysis.planned.contrasts.table`: the mean in the two conditions of a contrast.
    difference, low, high
        Their difference with its interval.
    """

    column: str
    family: str
    mean: str
    unit: int
    more: str
    less: str
    difference: str
    low: str
    high: str

    @property
    def is_scored(self) -> bool:
        """Whether responses are right or wrong."""
        return self is ACCURACY


ACCURACY = Outcome(
    "correct", "binomial", "accuracy", 100, "accuracy_more", "accuracy_less", "points", "points_low", "points_high"
)
LEVEL = Outcome(
    "level",
    "ordinal",
    "mean_level",
    1,
    "level_more",
    "level_less",
    "level_difference",
    "difference_low",
    "difference_high",
)


def choose_outcome(*, is_scored: bool) -> Outcome:
    """Choose the outcome by whether responses are right or wrong."""
    return ACCURACY if is_scored else LEVEL


def find_outcome(columns: Iterable[object]) -> Outcome:
    """Find the outcome of responses, or of a table of contrasts, by the names of their columns."""
    present = set(columns)
    is_rated = LEVEL.difference in present or (LEVEL.column in present and ACCURACY.column not in present)
    return choose_outcome(is_scored=not is_rated)
