"""``[adaptive]`` of the study file: the responses so far decide which trial comes next, by a policy that is frozen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from study.bundle import TYPE_LABELS, Manifest
from study.plan.covariates import TRIAL_COVARIATES
from study.plan.preregistration import DEFAULT, AnalysisPlan
from study.plan.procedure import Procedure, Section
from study.tasks.task import Task

AdaptivePolicy = Literal["staircase", "information"]
STRATUM = "stratum"
"""Difficulty by the measure of ``[trials.strata]``."""
DIFFICULTY = "difficulty"
"""The covariate of planned models, and the column of exports."""
MEASURES = (*(name for name in TRIAL_COVARIATES if name not in (DIFFICULTY, "unit_gap")), STRATUM)
OF_POLICY: dict[str, dict[str, Any]] = {
    "staircase": {"levels": 5, "start": None, "right": 2, "harder_by": 1, "easier_by": 1},
    "information": {"prior_mean": 0.0, "prior_sd": 1.5, "spread": 1.0, "among": 3},
}
"""The settings of each policy, with their defaults."""
LEAST_PER_LEVEL = 2
SHARE = 2
"""A study has at least so many times the trials of a participant: with fewer, there is little to choose from."""
Step = Annotated[int, Field(ge=1, le=5)] | None


def _is_absent(value: object) -> bool:
    return value is None


class Adaptive(Section):
    """``[adaptive]``: which trial comes next depends on the participant's responses (docs/how-to/adapt-difficulty.md).

    Each participant has ``trials`` trials. ``by`` is a measure of each trial that is frozen with the study: a covariate
    such as ``p_learner``, or ``stratum``, that of ``[trials.strata]``; trials are ``harder`` where it is ``low`` or
    ``high``. Difficulty is ranked within each type of trial, so that each type is as frequent at each difficulty.

    ``staircase``: ``levels`` (5) of equal size, from ``start`` (the middle); after ``right`` (2) correct responses in a
    row, ``harder_by`` (1) levels up; after each wrong one, ``easier_by`` (1) levels down. ``information``: the trial
    that is most informative about the participant's ability in the Rasch model, drawn from the ``among`` (3) best ones.
    An ability has a normal prior, ``prior_mean`` (0) and ``prior_sd`` (1.5), and ``spread`` (1) is the SD of trials'
    difficulty, all in log-odds.
    """

    policy: AdaptivePolicy
    trials: Annotated[int, Field(ge=8, le=1000)]
    by: str = "p_learner"
    harder: Literal["low", "high"] = "low"
    levels: Annotated[int, Field(ge=3, le=12)] | None = Field(default=None, exclude_if=_is_absent)
    start: Annotated[int, Field(ge=1)] | None = Field(default=None, exclude_if=_is_absent)
    right: Step = Field(default=None, exclude_if=_is_absent)
    harder_by: Step = Field(default=None, exclude_if=_is_absent)
    easier_by: Step = Field(default=None, exclude_if=_is_absent)
    prior_mean: Annotated[float, Field(ge=-5, le=5)] | None = Field(default=None, exclude_if=_is_absent)
    prior_sd: Annotated[float, Field(gt=0, le=5)] | None = Field(default=None, exclude_if=_is_absent)
    spread: Annotated[float, Field(gt=0, le=5)] | None = Field(default=None, exclude_if=_is_absent)
    among: Annotated[int, Field(ge=1, le=20)] | None = Field(default=None, exclude_if=_is_absent)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, given: Any) -> Any:
        """Set the defaults of the policy, and refuse the other's settings."""
        if not isinstance(given, dict) or given.get("policy") not in OF_POLICY:
            return given
        policy = given["policy"]
        for other in OF_POLICY.keys() - {policy}:
            if wrong := next((name for name in OF_POLICY[other] if given.get(name) is not None), None):
                raise ValueError(f"{wrong} is a setting of the policy {other!r}. Remove it, or choose that policy.")
        whole = OF_POLICY[policy] | {name: value for name, value in given.items() if value is not None}
        if policy == "staircase" and whole["start"] is None and isinstance(whole["levels"], int):
            whole["start"] = (whole["levels"] + 1) // 2
        return whole

    @model_validator(mode="after")
    def _check_names(self) -> Adaptive:
        if self.by not in MEASURES:
            raise ValueError(f"by: there is no measure {self.by!r} of a trial. Name one of {', '.join(MEASURES)}.")
        if self.levels is not None and not 1 <= (self.start or 0) <= self.levels:
            raise ValueError(f"start is level {self.start}, and there are levels 1 to {self.levels}. Choose one.")
        return self

    @property
    def target(self) -> float | None:
        """Share of correct responses at which a staircase is in balance: steps up and down are equally far."""
        if self.policy != "staircase":
            return None
        down, up = float(self.easier_by or 1), float(self.harder_by or 1)
        return float((down / (down + up)) ** (1 / (self.right or 1)))

    def find_shortage(self, trials: int) -> str:
        """Say that a study has too few trials to choose from, with the remedy; empty where it has enough."""
        if trials >= SHARE * self.trials:
            return ""
        return (
            f"adaptive.trials: {self.trials} of the study's {trials} trials leave little to choose from; a participant "
            f"may have at most half of them. Set trials to {trials // SHARE} or fewer, or raise trials.categories or "
            "trials.per_type."
        )

    def find_few(self, counts: Mapping[str, int]) -> str:
        """Say that a type (trials by type) has too few trials for the levels, with the remedy; empty where none has."""
        levels = self.levels or LEAST_PER_LEVEL
        least = LEAST_PER_LEVEL * levels
        short = next((kind for kind, count in sorted(counts.items()) if count < least), None)
        if short is None:
            return ""
        return (
            f"adaptive.levels: {levels} levels need {least} trials of each type, and {counts[short]} are of the type "
            f"{TYPE_LABELS[short]}. Raise trials.categories or trials.per_type, or lower adaptive.levels."
        )


def adaptive_of(manifest: Manifest) -> Adaptive | None:
    """Return the policy by which a frozen study chooses trials; None where their order is drawn before the first."""
    section = manifest.config.get("adaptive")
    return None if section is None else Adaptive.model_validate(section)


def describe_policy(adaptive: Adaptive) -> str:
    """Describe how trials are chosen, as a sentence without its end."""
    by = TRIAL_COVARIATES[adaptive.by].meaning if adaptive.by in TRIAL_COVARIATES else "the measure of the strata"
    ranked = f"Difficulty was ranked within each type of trial by {by} ({adaptive.harder}er is harder)"
    if adaptive.policy == "staircase":
        return (
            f"By a staircase over {adaptive.levels} levels of difficulty, from level {adaptive.start}: "
            f"{adaptive.harder_by} up after {adaptive.right} correct responses in a row, {adaptive.easier_by} down "
            f"after each wrong one (target {adaptive.target:.1%} correct). {ranked}"
        )
    return (
        f"By information: drawn from the {adaptive.among} trials that tell most about the participant's ability in a "
        f"Rasch model with a normal prior (mean {adaptive.prior_mean:g}, SD {adaptive.prior_sd:g} log-odds). {ranked}; "
        f"its SD is taken to be {adaptive.spread:g} log-odds"
    )


def refuse_unadaptable(
    adaptive: Adaptive | None, task: Task, procedure: Procedure, plan: AnalysisPlan, has: tuple[bool, bool, int]
) -> None:
    """Refuse what does not go with trials that are chosen by responses, as a ValueError.

    Parameters
    ----------
    has
        Whether each participant sees every condition, whether targets are spread over a measure, and the number of
        trials.
    """
    within, strata, trials = has
    if adaptive is None:
        return
    faults = [*_find_unfit(task, procedure, plan, within=within), adaptive.find_shortage(trials)]
    if adaptive.by == STRATUM and not strata:
        faults.append('adaptive.by: "stratum" is the measure of [trials.strata], which is missing. Add it.')
    if fault := next(filter(None, faults), ""):
        raise ValueError(fault)


def _find_unfit(task: Task, procedure: Procedure, plan: AnalysisPlan, *, within: bool) -> Iterator[str]:
    if not task.is_scored_at_once or task.of_attributes:
        yield (
            f"adaptive: no response to the task {task.name!r} is right or wrong when it is given, and the next trial "
            "depends on that. Remove the section."
        )
    if task.of_units or task.place is not None or task.steps > 1:
        yield (
            f"adaptive: trials of the task {task.name!r} cannot be chosen by the responses before them. Remove the "
            "section, or use a task with one response and two or more names, such as predict."
        )
    if procedure.blocks is not None:
        yield "adaptive: trials of [blocks] are drawn before the first response. Remove one of the two sections."
    if procedure.sittings is not None:
        yield "adaptive: trials of [sittings] are drawn before the first response. Remove one of the two sections."
    if within:
        yield (
            "allocation.within: with [adaptive], what a participant sees in one condition would depend on responses "
            "in the one before. Leave within out, or remove the section adaptive."
        )
    if plan.exclusions.least_accuracy is not None:
        yield (
            "analysis.exclusions.least_accuracy: [adaptive] drives the accuracy of all participants towards one value, "
            "so it does not tell who paid attention. Remove it, and use pacing.catch."
        )
    if lost := next((name for name, model in plan.models.items() if DIFFICULTY not in model), ""):
        yield (
            f"analysis.models: {lost} has no {DIFFICULTY}. [adaptive] gives conditions trials of different difficulty, "
            f"so each model needs + {DIFFICULTY}, also as a slope by participant."
        )


def plan_adaptive(content: Any) -> Any:
    """Plan the difficulty of trials in the models of a study file that chooses them, unless it plans its own models."""
    if not isinstance(content, dict) or not isinstance(content.get("adaptive"), dict):
        return content
    plan = content.get("analysis", {})
    if (
        not isinstance(plan, dict)
        or "models" in plan
        or content["adaptive"].get("policy") not in get_args(AdaptivePolicy)
    ):
        return content
    models = {name: add_difficulty(model) for name, model in DEFAULT.items()}
    return {**content, "analysis": {"models": models, **plan}}


def add_difficulty(model: str) -> str:
    """Add the difficulty to a model of the default plan, and its slope by participant."""
    fixed, bar, random = model.partition(" + (")
    return f"{fixed} + {DIFFICULTY}{bar}{random}".replace("|| participant", f"+ {DIFFICULTY} || participant", 1)
