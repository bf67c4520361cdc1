"""A stored response as a row of a table, with what was asked, the codes of a text, and the judgements of a set."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

from study.adaptive.policy import MARK as ADAPTIVE
from study.adaptive.policy import ChoiceMark
from study.attributes.rows import CHOICES, ask_each
from study.attributes.sets import LETTERS, read_set
from study.bundle import Trial
from study.collection.tables.adapted import AbilityAfter, ResponseKey
from study.collection.tables.places import read_scores
from study.participation.blocks import BlockPlace, read_place
from study.participation.periods import Period, read_period
from study.participation.sittings.division import MARK, read_sitting
from study.places.chance import Permutation
from study.plan.coding import Coding
from study.plan.orders import read_order
from study.store.coding import TextKey
from study.tasks.task import Task

CodePair = tuple[str | None, str | None]
"""The codes of a text by both raters; None where one is missing."""
Codes = Mapping[TextKey, CodePair]
UNCODED: CodePair = (None, None)
NO_CODES: Codes = MappingProxyType({})
Asked = tuple[Task, bool, bool, Permutation | None, Coding]


def format_time(at: int) -> str:
    """Write a time in nanoseconds since 1970 in ISO 8601."""
    return datetime.fromtimestamp(at / 1e9, UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class StoredResponse:
    """A stored response, its frozen trial, what was asked, and whether the study has blocks or conditions within.

    ``permutation`` has the other images' regions, where responses are places; ``codes`` are those of the two raters,
    where they are texts, and ``coding`` says which of them count as correct; ``letter`` is that of the attribute, where
    a trial asks about several and ``trial`` is the question about one.
    """

    row: Mapping[str, Any]
    trial: Trial
    task: Task
    has_blocks: bool = False
    has_periods: bool = False
    permutation: Permutation | None = None
    coding: Coding = field(default_factory=Coding)
    codes: CodePair = UNCODED
    letter: str = ""
    adapted: AbilityAfter | None = None

    @property
    def is_selected(self) -> int | None:
        """Whether the attribute was chosen; None where options are chosen."""
        facts = self.trial.attributes
        return None if facts is None else int(self.letter in read_set(self.row["place"], len(facts.names)))

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

    @cached_property
    def mark(self) -> ChoiceMark | None:
        """How the trial was chosen by the responses before it; None where its place was drawn."""
        if self.adapted is None:
            return None
        return ChoiceMark(**json.loads(self.row["screen_json"])[ADAPTIVE])

    @property
    def sitting(self) -> int | None:
        """The number of the sitting in which the trial was; None in a study of one."""
        screen = self.row["screen_json"]
        known = read_sitting(json.loads(screen)) if f'"{MARK}"' in screen else None
        return None if known is None else known.number

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
        """Whether a response, or the judgement of an attribute, is correct.

        None where nothing is right or wrong, and before both raters coded a text.
        """
        if self.is_selected is not None:
            return int(self.is_selected == (self.trial.trial_type == "used"))
        if not self.task.is_written:
            return int(self.row["choice"] in self.task.find_right(self.trial)) if self.task.is_scored else None
        return None if None in self.codes else int(all(code in self.coding.correct for code in self.codes))

    @property
    def choice(self) -> str | None:
        """The name of the option, whether the attribute was chosen, or the outcome of a text's codes."""
        if self.is_selected is not None:
            return CHOICES[1 - self.is_selected]
        if not self.task.is_written:
            return self.task.name_choice(self.trial, self.row["choice"])
        return None if self.correct is None else self.task.name_choice(self.trial, "a" if self.correct else "b")

    @property
    def first_correct(self) -> int | None:
        """Whether the first of two responses is right; None where a trial has one."""
        first = self.row["first_choice"]
        return None if first is None else int(first in self.task.find_right(self.trial))


def list_judgements(
    rows: Sequence[Mapping[str, Any]],
    trials: Mapping[str, Mapping[str, Trial]],
    asked: Mapping[str, Asked],
    codes: Codes = NO_CODES,
    adapted: Mapping[ResponseKey, AbilityAfter] = MappingProxyType({}),
) -> Iterator[StoredResponse]:
    """List what the rows of the table are of."""
    for row in rows:
        trial, given = trials[row["study_hash"]][row["item_id"]], asked[row["study_hash"]]
        after = adapted.get((row["session_id"], row["trial_index"]))
        coded = codes.get(TextKey(row["session_id"], row["trial_index"]), UNCODED)
        for letter, one in zip(LETTERS, ask_each(trial), strict=False):
            yield StoredResponse(row, one, *given, coded, letter if trial.attributes else "", after)
