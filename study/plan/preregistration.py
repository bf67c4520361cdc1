"""The analysis plan: ``[analysis]`` of the study file, frozen and hashed with the study, executed as written.

What it leaves at its default is planned too: the paper's three nested models, each explanation against none for each
trial type with Holm's correction, no exclusions, and the participants of ``[allocation]``.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from study.bundle import TRIAL_TYPES, Manifest, TrialType, canonical
from study.conditions import list_separate_conditions

Proportion = Annotated[float, Field(ge=0, le=1)]
Milliseconds = Annotated[float, Field(gt=0)]

PREDICTORS = ("trial_type", "saliency", "examples")
FACTORIAL_CONDITIONS = ("none", "saliency", "examples", "both")
Spending = Literal["obrien_fleming", "pocock"]
NESTED = {
    "null": "trial_type",
    "explanation": "trial_type + saliency + examples",
    "interaction": "trial_type * saliency * examples",
}
"""Fixed effects of the paper's models, smallest first."""


class PlanSection(BaseModel):
    """A table of the plan; a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Exclusions(PlanSection):
    """``[analysis.exclusions]``: who and what is left out. A rule that is not given excludes nobody.

    People first, judged by all their answers: fewer than ``fewest_answers``; a share of answers under ``fastest_ms``
    above ``most_fast``; accuracy where the AI is right below ``least_accuracy``. Then single answers: faster than
    ``fastest_ms``, slower than ``slowest_ms``.
    """

    fewest_answers: Annotated[int, Field(ge=1)] | None = None
    most_fast: Proportion | None = None
    least_accuracy: Proportion | None = None
    fastest_ms: Milliseconds | None = None
    slowest_ms: Milliseconds | None = None

    @model_validator(mode="after")
    def _complete(self) -> Exclusions:
        if self.most_fast is not None and self.fastest_ms is None:
            raise ValueError("most_fast needs fastest_ms: say which answers are too fast.")
        return self


class PlannedContrast(PlanSection):
    """One of ``[[analysis.contrasts]]``: condition ``more`` minus condition ``less``, averaged over ``trial_types``."""

    more: str
    less: str = "none"
    trial_types: tuple[TrialType, ...] = TRIAL_TYPES

    @model_validator(mode="after")
    def _check_conditions(self) -> PlannedContrast:
        for name in (self.more, self.less):
            if name not in (*FACTORIAL_CONDITIONS, *list_separate_conditions()):
                known = ", ".join((*FACTORIAL_CONDITIONS, *list_separate_conditions()))
                raise ValueError(f"there is no condition {name!r} to contrast; choose of {known}.")
        return self


class Stopping(PlanSection):
    """``[analysis.stopping]``: looks at the answers on the way, and when one of them ends the collection.

    At each of ``looks`` (people of every condition who finished, rising; the last is the planned end) ``contrast`` is
    tested by the largest model; beyond its bound the collection is closed. The bounds share the plan's alpha among the
    looks as ``spending`` says (`study.analysis.bounds`).
    """

    looks: Annotated[tuple[Annotated[int, Field(ge=2)], ...], Field(min_length=1, max_length=20)]
    contrast: PlannedContrast
    spending: Spending = "obrien_fleming"

    @model_validator(mode="after")
    def _check_schedule(self) -> Stopping:
        if list(self.looks) != sorted(set(self.looks)):
            raise ValueError("looks must rise: each is a number of participants per condition.")
        if {self.contrast.more, self.contrast.less} & set(list_separate_conditions()):
            raise ValueError(
                "the contrast of the looks must be between conditions of the two factors, not a placebo or concepts."
            )
        return self


_EACH = tuple(PlannedContrast(more=name, trial_types=(t,)) for t in TRIAL_TYPES for name in FACTORIAL_CONDITIONS[1:])


_RANDOM = re.compile(r"\(([^()|]*)(\|\|?)([^()|]*)\)")
_GROUPS = ("participant", "category")


def _check_random(name: str, terms: list[tuple[str, str, str]]) -> None:
    """Refuse random effects of anything but the predictors, by participant and by category."""
    groups = [group.replace(" ", "").split(":") for _, _, group in terms]
    words = {word for columns, _, _ in terms for word in re.findall(r"[A-Za-z_]\w*", columns)}
    inner = {part for group in groups for part in group[1:]}
    if not words | inner <= set(PREDICTORS) or not {group[0] for group in groups} <= set(_GROUPS):
        raise ValueError(
            f"the random effects of the model {name} may be slopes of {', '.join(PREDICTORS)} by participant and by "
            "category, like (trial_type || participant) + (saliency + examples || category)."
        )
    if terms and {group[0] for group in groups} != set(_GROUPS):
        raise ValueError(
            f"the model {name} needs random effects of participants and of categories, at least (1 | participant) and "
            "(1 | category)."
        )


def _random_of(model: str) -> tuple[str, ...]:
    return tuple(sorted("".join(term).replace(" ", "") for term in _RANDOM.findall(model)))


class AnalysisPlan(PlanSection):
    """``[analysis]``.

    ``models`` are nested, smallest first, name = fixed effects in lme4's notation. Random effects may be added, the
    same to each: ``(trial_type || participant) + (saliency + examples || category)``; without any, participants and
    categories are crossed random intercepts. A singular fit is reduced by `study.analysis.random_effects.RULE`.
    ``participants`` per condition are collected before the analysis counts as final; without it, those of
    ``[allocation]``. Without ``stopping`` no look ends a collection.
    """

    models: Annotated[dict[str, str], Field(min_length=1)] = NESTED
    contrasts: tuple[PlannedContrast, ...] = _EACH
    exclusions: Exclusions = Exclusions()
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    participants: Annotated[int, Field(ge=1)] | None = None
    stopping: Stopping | None = Field(default=None, exclude_if=lambda found: found is None)
    """Where there is none it is not written: plans frozen before there were any keep their hash."""

    @model_validator(mode="after")
    def _check_last_interim(self) -> Self:
        if self.stopping is not None and self.participants != self.stopping.looks[-1]:
            raise ValueError("participants must be said, and be the last of the looks of [analysis.stopping].")
        return self

    @model_validator(mode="after")
    def _check_models(self) -> AnalysisPlan:
        for name, model in self.models.items():
            fixed = _RANDOM.sub("", model)
            unknown = sorted(set(re.findall(r"[A-Za-z_]\w*", fixed)) - set(PREDICTORS))
            if unknown or not re.fullmatch(r"[\w\s+*:()1-]+", fixed):
                raise ValueError(f"the model {name} may be made of {', '.join(PREDICTORS)} only, with + * and :.")
            _check_random(name, _RANDOM.findall(model))
        if len({_random_of(model) for model in self.models.values()}) > 1:
            raise ValueError("the models must have the same random effects: their tests are of the fixed effects.")
        return self

    def with_quota(self, per_condition: int) -> AnalysisPlan:
        """The plan with the participants per condition that there are places for, where it names none itself."""
        return self.model_copy(update={"participants": self.participants or per_condition})

    @property
    def sha256(self) -> str:
        """Of the plan in its canonical form, whatever its order in the file."""
        content = {**self.model_dump(mode="json"), "order": list(self.models)}
        return hashlib.sha256(canonical(content)).hexdigest()


def load_frozen_plan(manifest: Manifest) -> AnalysisPlan | None:
    """The plan that a study was frozen with; None where there was none. Its classifier's settings are not looked at."""
    config = manifest.config
    if "analysis" not in config:
        return None
    plan, allocation = AnalysisPlan.model_validate(config["analysis"]), config.get("allocation")
    return plan.with_quota(allocation["per_condition"]) if allocation else plan
