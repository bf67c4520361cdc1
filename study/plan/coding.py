"""``[coding]`` of the study file: the codes that raters give to texts, and what does not go with texts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator, model_validator

from study.bundle import Manifest
from study.plan.preregistration import AnalysisPlan
from study.plan.procedure import Keys, Procedure, Section
from study.tasks.task import Task

Code = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
CODES = ("matches", "partly", "does_not_match")


class Coding(Section):
    """``[coding]``: of the task ``name``, the ``codes`` that two raters give to each text, 2 to 9.

    A response counts as correct if both raters gave it one of the codes in ``correct``.
    """

    codes: Annotated[tuple[Code, ...], Field(min_length=2, max_length=9)] = CODES
    correct: Annotated[tuple[Code, ...], Field(min_length=1)] = CODES[:1]

    @field_validator("codes", "correct")
    @classmethod
    def _check_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise ValueError("name each code once.")
        return value

    @model_validator(mode="after")
    def _check_correct(self) -> Coding:
        unknown = [code for code in self.correct if code not in self.codes]
        if unknown:
            raise ValueError(f"correct: {unknown[0]!r} is none of the codes {', '.join(self.codes)}. Name one of them.")
        if len(self.correct) == len(self.codes):
            raise ValueError("correct: every code counts as correct, so no response could be incorrect. Leave one out.")
        return self


def coding_of(manifest: Manifest) -> Coding:
    """Return the codes that a study was frozen with."""
    return Coding.model_validate(manifest.config.get("coding", {}))


def format_code(code: str) -> str:
    """Write a code as raters read it."""
    return code.replace("_", " ").capitalize()


def refuse_unwritten(task: Task, coding: Coding, procedure: Procedure, plan: AnalysisPlan) -> None:
    """Refuse what does not go with texts, and the section where the task asks for none, as a ValueError."""
    if not task.is_written:
        if coding != Coding():
            raise ValueError(f"coding: the task {task.name!r} asks for no text. Remove the section.")
        return
    if procedure.pay.per_right > 0 or procedure.pay.most > 0:
        raise ValueError(
            f"pay: a response of the task {task.name!r} is correct or not once its raters have coded it, and a bonus "
            "is owed before. Remove the bonus, and pay all participants a fixed amount."
        )
    if procedure.pacing.catch:
        raise ValueError(
            f"pacing.catch: an attention check asks for an option, and the task {task.name!r} has none. Set it to 0."
        )
    if procedure.keys != Keys():
        raise ValueError(f"keys: participants of the task {task.name!r} type a text. Remove the section.")
    if plan.stopping is not None:
        raise ValueError(
            f"analysis.stopping: the texts of the task {task.name!r} are coded after the collection, so no interim "
            "analysis can end it. Remove the section."
        )
