"""``[trials]`` of the study file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from study.bundle import TRIAL_TYPES
from study.plan.procedure import Section
from study.plan.strata import Strata
from study.tasks.task import TWO


class Trials(Section):
    """``[trials]``: categories (a number that spans the range of accuracy, or names), and trials of each type in each.

    ``spread`` sets how a number of categories is spaced: evenly over the ranks by accuracy, or over accuracy itself.
    ``confusion`` sets which errors choose the foil: confusions of the two categories in both directions, or only
    images of the target category predicted as the foil.
    ``options`` is how many classes participants choose from, 2 to 5, of the task ``predict``: the AI's prediction, its
    foil, and the next most confusable classes. With more than two, no condition may show examples.
    ``levels`` is how many levels the scale of the task ``rating`` has, 3 to 7; 5 without it.
    """

    categories: Annotated[int, Field(ge=1)] | tuple[str, ...] = 30
    per_type: Annotated[int, Field(ge=1)] = 1
    practice: Annotated[int, Field(ge=0, le=12)] = 3
    spread: Literal["ranks", "accuracy"] = Field(default="ranks", exclude_if=lambda how: how == "ranks")
    confusion: Literal["both", "target"] = Field(default="both", exclude_if=lambda how: how == "both")
    options: Annotated[int, Field(ge=TWO, le=5)] = Field(default=TWO, exclude_if=lambda options: options == TWO)
    levels: int | None = Field(default=None, exclude_if=lambda levels: levels is None)
    strata: Strata | None = Field(default=None, exclude_if=lambda value: value is None)
    """Both are omitted from the settings if there are none: studies frozen before them keep their hash."""

    @property
    def most(self) -> int:
        """Number of trials if no image is missing."""
        categories = self.categories if isinstance(self.categories, int) else len(self.categories)
        return len(TRIAL_TYPES) * categories * self.per_type

    @field_validator("categories")
    @classmethod
    def _check_names(cls, value: int | tuple[str, ...]) -> int | tuple[str, ...]:
        if isinstance(value, int):
            return value
        if not value:
            raise ValueError("name at least one category, or give their number.")
        names = [name.casefold() for name in value]
        if (twice := next((name for name in value if names.count(name.casefold()) > 1), None)) is not None:
            raise ValueError(f"{twice!r} is named twice: name each category once.")
        return value
