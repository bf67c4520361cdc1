"""The analysis plan: ``[analysis]`` of the study file, frozen and hashed with the study, executed as written.

Its defaults are planned too: the paper's three nested models with random slopes, each explanation against none for each
trial type with Holm's correction, no exclusions, and the participants of ``[allocation]``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from study.bundle import TRIAL_TYPES, Manifest, TrialType, canonical
from study.conditions import list_separate_conditions
from study.plan.covariates import COVARIATES
from study.plan.equivalence import LARGEST_POINTS, Bounds, parse_bounds
from study.plan.former import FEWEST
from study.plan.means import FACTORS, PlannedMeans, is_empty, list_factors

Proportion = Annotated[float, Field(ge=0, le=1)]
Milliseconds = Annotated[float, Field(gt=0)]


def _parse_points(given: Any) -> Bounds | None:
    return None if given in (None, "") else parse_bounds(given, largest=LARGEST_POINTS)


def _is_absent(value: object) -> bool:
    return value is None


PREDICTORS = FACTORS
GROUPS = ("participant", "category", "item")
"""What random effects are of; ``item`` is the image, and the only one that models may do without."""
FACTORIAL_CONDITIONS = ("none", "saliency", "examples", "both")
Spending = Literal["obrien_fleming", "pocock"]
Tests = Literal["corrected", "chi_square"]
NESTED = {
    "null": "trial_type",
    "explanation": "trial_type + saliency + examples",
    "interaction": "trial_type * saliency * examples",
}
"""Fixed effects of the paper's models, smallest first; without random effects they have the paper's intercepts."""
RANDOM = "(trial_type || participant) + (saliency + examples || category) + (saliency + examples || item)"
"""Random effects that the tests of explanations need where each participant is in one condition."""
DEFAULT = {name: f"{fixed} + {RANDOM}" for name, fixed in NESTED.items()}


class PlanSection(BaseModel):
    """A table of the plan; a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Exclusions(PlanSection):
    """``[analysis.exclusions]``: rules that exclude participants and responses; none by default.

    First participants, by all their responses: fewer than ``fewest_responses``; a share of responses under
    ``fastest_ms`` above ``most_fast``; accuracy where the AI is right below ``least_accuracy``. Then single responses:
    faster than ``fastest_ms``, slower than ``slowest_ms``.
    """

    fewest_responses: Annotated[int, Field(ge=1)] | None = Field(
        default=None, validation_alias=AliasChoices("fewest_responses", FEWEST)
    )
    most_fast: Proportion | None = None
    least_accuracy: Proportion | None = None
    fastest_ms: Milliseconds | None = None
    slowest_ms: Milliseconds | None = None

    @model_validator(mode="after")
    def _complete(self) -> Exclusions:
        if self.most_fast is not None and self.fastest_ms is None:
            raise ValueError("most_fast needs fastest_ms: set which responses are too fast.")
        return self


class PlannedPriors(PlanSection):
    """``[analysis.priors]``: priors of the Bayesian fit, in log-odds; that of effects is ``prior_sd``, or 1.

    ``intercept_sd`` is the SD of the intercept where predictors are at their means, ``random_sd`` the scale of the
    half-normal prior of random effects' standard deviations, ``correlation`` the LKJ parameter of their correlations.
    """

    intercept_sd: Annotated[float, Field(gt=0, le=10)] = 1.5
    random_sd: Annotated[float, Field(gt=0, le=10)] = 1.0
    correlation: Annotated[float, Field(gt=0, le=100)] = 2.0


def _is_default(priors: object) -> bool:
    return priors == PlannedPriors()


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
                raise ValueError(f"there is no condition {name!r} to contrast; choose from {known}.")
        return self


class Stopping(PlanSection):
    """``[analysis.stopping]``: interim analyses, and the rule by which one of them ends the collection.

    At each of ``looks`` (participants per condition who finished, increasing; the last is the planned end) the largest
    model tests ``contrast``; beyond its bound the collection closes. The bounds spend the plan's alpha over the
    interim analyses by ``spending`` (`study.analysis.planned.bounds`).
    """

    looks: Annotated[tuple[Annotated[int, Field(ge=2)], ...], Field(min_length=1, max_length=20)]
    contrast: PlannedContrast
    spending: Spending = "obrien_fleming"

    @model_validator(mode="after")
    def _check_schedule(self) -> Stopping:
        if list(self.looks) != sorted(set(self.looks)):
            raise ValueError("looks must increase: each is a number of participants per condition.")
        if {self.contrast.more, self.contrast.less} & set(list_separate_conditions()):
            raise ValueError(
                "the stopping contrast must be between conditions of the two factors, not a placebo or concepts."
            )
        return self


_EACH = tuple(PlannedContrast(more=name, trial_types=(t,)) for t in TRIAL_TYPES for name in FACTORIAL_CONDITIONS[1:])


_RANDOM = re.compile(r"\(([^()|]*)(\|\|?)([^()|]*)\)")


def _check_random(name: str, terms: list[tuple[str, str, str]]) -> None:
    """Refuse random effects other than of the predictors, by participant, by category and by image."""
    groups = [group.replace(" ", "").split(":") for _, _, group in terms]
    words = {word for columns, _, _ in terms for word in re.findall(r"[A-Za-z_]\w*", columns)}
    inner = {part for group in groups for part in group[1:]}
    if (
        not words <= {*PREDICTORS, *COVARIATES}
        or not inner <= {*PREDICTORS, *GROUPS}
        or not {group[0] for group in groups} <= set(GROUPS)
    ):
        raise ValueError(
            f"the random effects of the model {name} may be slopes of {', '.join(PREDICTORS)} and covariates by "
            "participant, category and item (the image), like (trial_type || participant) + (saliency + examples || "
            "category) + (saliency + examples || item)."
        )
    if terms and not {group[0] for group in groups} >= set(GROUPS[:2]):
        raise ValueError(
            f"the model {name} needs random effects of participants and of categories, at least (1 | participant) and "
            "(1 | category)."
        )


def _random_of(model: str) -> tuple[str, ...]:
    return tuple(sorted("".join(term).replace(" ", "") for term in _RANDOM.findall(model)))


def _list_names(model: str) -> set[str]:
    """List the predictors in a model's fixed effects."""
    return set(re.findall(r"[A-Za-z_]\w*", _RANDOM.sub("", model)))


def _expand(model: str) -> frozenset[frozenset[str]]:
    """Expand fixed effects to their terms, each the set of its predictors: ``a * b`` has a, b and a:b."""
    terms = set()
    for piece in re.sub(r"\s", "", _RANDOM.sub("", model)).split("+"):
        crossed = [name for name in piece.split("*") if name not in ("", "1")]
        for size in range(1, len(crossed) + 1):
            terms |= {frozenset(":".join(some).split(":")) for some in combinations(crossed, size)}
    return frozenset(terms)


class AnalysisPlan(PlanSection):
    """``[analysis]``.

    ``models`` are nested, in any order, name = fixed and random effects in lme4's notation, the same random effects
    in each; without any, participants and categories are crossed random intercepts, as in the paper. ``item`` is the
    image. Fixed effects may also be of `study.plan.covariates.COVARIATES`, in SDs from their mean. A singular fit is
    reduced by `study.analysis.models.random_effects.RULE`. ``tests`` of neighbouring models are ``"corrected"``: by the
    F distribution where there are slopes, and together by Holm's method; or ``"chi_square"``, each at alpha, as in the
    paper and in plans frozen without this setting.
    Without ``contrasts``, the conditions of the study are compared for each trial type (`study.plan.comparisons`).
    ``participants`` per condition are collected before the analysis counts as final; without it, those of
    ``[allocation]``. Without ``stopping`` no interim analysis ends a collection.
    ``equivalence``, in percentage points, 5 or [-5, 10], adds to each contrast a test that the difference in accuracy
    lies between these bounds; ``prior_sd``, in log-odds, a Bayes factor for no difference, with a normal prior. It is
    also the SD of effects in a Bayesian fit, whose other priors are in ``priors``. ``means`` are estimated means of the
    largest model.
    """

    models: Annotated[dict[str, str], Field(min_length=1)] = DEFAULT
    tests: Tests = Field(default="corrected", exclude_if=lambda tests: tests == "chi_square")
    contrasts: tuple[PlannedContrast, ...] = _EACH
    exclusions: Exclusions = Exclusions()
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    participants: Annotated[int, Field(ge=1)] | None = None
    equivalence: Annotated[
        Bounds | None, BeforeValidator(_parse_points, json_schema_input_type=str | float | list[float] | None)
    ] = Field(default=None, exclude_if=_is_absent)
    prior_sd: Annotated[float, Field(gt=0, le=10)] | None = Field(default=None, exclude_if=_is_absent)
    priors: PlannedPriors = Field(default=PlannedPriors(), exclude_if=_is_default)
    means: PlannedMeans = Field(default=PlannedMeans(), exclude_if=is_empty)
    stopping: Stopping | None = Field(default=None, exclude_if=_is_absent)
    """Each of the last five is omitted from the settings if there is none: plans frozen before it existed keep their
    hash."""

    @model_validator(mode="after")
    def _check_last_interim(self) -> Self:
        if self.stopping is not None and self.participants != self.stopping.looks[-1]:
            raise ValueError("participants must be set, and equal the last of the looks of [analysis.stopping].")
        return self

    @model_validator(mode="after")
    def _check_models(self) -> AnalysisPlan:
        for name, model in self.models.items():
            fixed = _RANDOM.sub("", model)
            unknown = sorted(_list_names(model) - {*PREDICTORS, *COVARIATES})
            if unknown or not re.fullmatch(r"[\w\s+*:()1-]+", fixed):
                raise ValueError(
                    f"the model {name} may contain only {', '.join(PREDICTORS)} and the covariates "
                    f"{', '.join(COVARIATES)}, with + * and :."
                )
            _check_random(name, _RANDOM.findall(model))
        if len({_random_of(model) for model in self.models.values()}) > 1:
            raise ValueError("the models must have the same random effects: their tests compare fixed effects.")
        self._check_covariates()
        self._check_means()
        return self

    def _check_means(self) -> None:
        largest = list(self.models)[-1]
        known = _list_names(_RANDOM.sub("", self.models[largest]))
        if lost := {name for text in self.means.of for name in list_factors(text)} - known:
            raise ValueError(
                f"analysis.means names {' and '.join(sorted(lost))}, which the model {largest} does not have: leave it "
                "out, or add it to the model."
            )

    def _check_covariates(self) -> None:
        """Require the slopes without which participants who differ in a covariate's effect are taken for evidence."""
        terms = _RANDOM.findall(next(iter(self.models.values())))
        sloped = {word for columns, _, group in terms if group.strip() == GROUPS[0] for word in columns.split()}
        if lost := [name for name in self.covariates if name not in sloped]:
            raise ValueError(
                f"the models name {' and '.join(lost)}, in whose effect participants may differ: give each model "
                f"slopes by participant, like (trial_type + {' + '.join(lost)} || participant)."
            )

    @field_validator("models", mode="after")
    @classmethod
    def _put_smallest_first(cls, models: dict[str, str]) -> dict[str, str]:
        """Order the models by their terms: the order of a file is not hashed with the study, and may be lost."""
        return dict(sorted(models.items(), key=lambda model: len(_expand(model[1]))))

    def check_conditions(self, conditions: Sequence[str], *, to_build: bool) -> None:
        """Refuse contrasts with conditions that no participant will be in; those of bundles are as they were frozen.

        Raises
        ------
        ValueError
            With the setting, the conditions and the remedy.
        """
        stopping = self.stopping
        if stopping is not None and not {stopping.contrast.more, stopping.contrast.less} <= set(conditions):
            raise ValueError("analysis.stopping.contrast: name two of the study's conditions.")
        if to_build:
            self._check_nesting()
        own = self.contrasts if to_build and "contrasts" in self.model_fields_set else ()
        named = dict.fromkeys(name for one in own for name in (one.more, one.less))
        if absent := [name for name in named if name not in conditions]:
            raise ValueError(
                f"analysis.contrasts: {', '.join(absent)} is not among the study's conditions "
                f"({', '.join(conditions)}). Leave those contrasts out, or add the condition."
            )

    def _check_nesting(self) -> None:
        for (small, less), (large, more) in pairwise(self.models.items()):
            if not _expand(less) < _expand(more):
                raise ValueError(
                    f"analysis.models: {large} must have every term of {small} and more, because their test compares "
                    "the two."
                )

    @property
    def covariates(self) -> tuple[str, ...]:
        """The covariates that its models name."""
        named = set().union(*map(_list_names, self.models.values()))
        return tuple(name for name in COVARIATES if name in named)

    def with_quota(self, per_condition: int) -> AnalysisPlan:
        """Return the plan, with the quota as its participants per condition if it sets none."""
        return self.model_copy(update={"participants": self.participants or per_condition})

    @property
    def sha256(self) -> str:
        """SHA-256 of the plan in its canonical form, whatever its order in the file."""
        content = {**self.model_dump(mode="json"), "order": list(self.models)}
        rules = content["exclusions"]
        rules[FEWEST] = rules.pop("fewest_responses")  # so that plans frozen under that name keep their hash
        return hashlib.sha256(canonical(content)).hexdigest()


def complete(frozen: Mapping[str, Any]) -> dict[str, Any]:
    """Add to a frozen plan what it means where it was frozen before the setting existed."""
    return {"models": NESTED, "tests": "chi_square", **frozen}


def load_frozen_plan(manifest: Manifest) -> AnalysisPlan | None:
    """Return the plan that a study was frozen with, None if it has none, without reading its classifier's settings."""
    config = manifest.config
    if "analysis" not in config:
        return None
    plan, allocation = AnalysisPlan.model_validate(complete(config["analysis"])), config.get("allocation")
    return plan.with_quota(allocation["per_condition"]) if allocation else plan
