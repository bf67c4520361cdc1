"""A stored response as the columns of exported tables read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from study.bundle import Trial
from study.collection.tables.places import read_scores
from study.participation.blocks import BlockPlace, read_place
from study.participation.periods import Period, read_period
from study.places.chance import Permutation
from study.plan.coding import Coding
from study.plan.orders import read_order
from study.tasks.task import Task


def format_time(at: int) -> str:
    """Write a time in nanoseconds since 1970 in ISO 8601."""
    return datetime.fromtimestamp(at / 1e9, UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class StoredResponse:
    """A stored response, its frozen trial, what was asked, and whether the study has blocks or conditions within.

    ``permutation`` has the other images' regions, where responses are places; ``codes`` are those of the two raters,
    where they are texts, and ``coding`` says which of them count as correct.
    """

    row: Mapping[str, Any]
    trial: Trial
    task: Task
    has_blocks: bool = False
    has_periods: bool = False
    permutation: Permutation | None = None
    coding: Coding = field(default_factory=Coding)
    codes: tuple[str | None, str | None] = (None, None)

    @property
    def received_at(self) -> str:
        """Time of receipt, in ISO 8601."""
        return format_time(self.row["received_at"])

    @cached_property
    def place(self) -> BlockPlace | None:
        """The place of the trial among the blocks of the study; None without blocks."""
        return read_place(json.loads(self.row["screen_json"])) if self.has_blocks else None

    @cached_property
    def period(self) -> Period | None:
        """The period of the trial; None unless participants see every condition."""
        return read_period(json.loads(self.row["screen_json"])) if self.has_periods else None

    @property
    def condition(self) -> str:
        """The condition of the trial."""
        return str(self.row["condition"]) if self.period is None else self.period.condition

    @property
    def previous_condition(self) -> str | None:
        """The condition of the participant's period before."""
        if self.period is None or self.period.number == 1:
            return None
        return read_order(self.row["condition"])[self.period.number - 2]

    @cached_property
    def scores(self) -> Mapping[str, Any]:
        """The place that was marked and its scores, by column; nothing where an option was chosen."""
        if self.permutation is None or self.task.place is None:
            return {}
        return read_scores(self.task.place, self.row["place"], self.trial, self.permutation)

    @property
    def correct(self) -> int | None:
        """Whether the response is correct; None where nothing is right or wrong, and before both raters coded it."""
        if not self.task.is_written:
            return int(self.row["choice"] in self.task.find_right(self.trial)) if self.task.is_scored else None
        return None if None in self.codes else int(all(code in self.coding.correct for code in self.codes))

    @property
    def choice(self) -> str | None:
        """The name of the option, or the outcome of a text's codes."""
        if not self.task.is_written:
            return self.task.name_choice(self.trial, self.row["choice"])
        return None if self.correct is None else self.task.name_choice(self.trial, "a" if self.correct else "b")

    @property
    def first_correct(self) -> int | None:
        """Whether the first of two responses is right; None where a trial has one."""
        first = self.row["first_choice"]
        return None if first is None else int(first in self.task.find_right(self.trial))
