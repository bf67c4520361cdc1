"""The study file (TOML): everything that defines a study, checked as a whole before anything runs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

import data
from core.attribution import METHODS
from core.attribution.outside.opening import is_external, open_registered
from core.attribution.records import sign_of
from core.attribution.signs import OF_ONE_CLASS
from core.errors import ForetellError
from core.parameters import parse_parameters
from core.registry import Registry
from study.bundle import GRID, StudyName
from study.conditions import CONDITIONS
from study.plan.adaptive import Adaptive, plan_adaptive, refuse_unadaptable
from study.plan.attributes import Attributes, plan_attributes, refuse_unlisted
from study.plan.coding import Coding, refuse_unwritten
from study.plan.comparisons import plan_contrasts
from study.plan.former import PRESENT_NAMES
from study.plan.orders import Allocation, check_within, plan_within
from study.plan.places import Place, refuse_unplaced
from study.plan.preregistration import AnalysisPlan, complete
from study.plan.procedure import TO_BUILD, Keys, Procedure, Section, require
from study.plan.scoring import find_scoring
from study.plan.sittings import check_sittings
from study.plan.teaching import Teaching
from study.plan.texts import find_language_fault, list_default_texts
from study.plan.trials import Trials
from study.plan.units import Units, plan_units, refuse_unasked
from study.tasks import DEFAULT_TASK, TASKS, open_task
from study.tasks.task import TWO, Task, WordedTask
from study.workspace.tomlfile import load_toml

IMAGE_SETS = Registry("image set", data.SETS, "foretell.image_sets")
Proportion = Annotated[float, Field(ge=0, le=1)]


def _check_task(name: str) -> str:
    require(TASKS, name)
    return name


class Identity(Section):
    """``[study]``: its name (in links), the title that participants read, the random seed, and what they are asked.

    ``task`` is one of the tasks in the catalogue: ``predict`` the AI's choice, ``accept_reject`` its label, state
    ``agreement`` with it in four levels, or show ``reliance`` on it: name the image alone, and again with its label and
    explanation (``reliance_one_step``: once); ``localise`` the evidence for its label by a mark, or ``highlight`` it by
    a brush; or ask for a ``rating`` of it, in which nothing is right or wrong. ``unit_choice`` asks which of two images
    activates a unit more, ``unit_counterfactual`` which of two occlusions of an image, and ``name`` what a unit
    responds to, in the participant's own words. ``discover`` asks which attributes the AI uses.
    ``colours`` of the participants' page: ``light`` for all, so that every image has the same surround, or those of
    each participant's ``system``.
    """

    name: StudyName
    title: str
    seed: Annotated[int, Field(ge=0)] = 0
    task: Annotated[str, AfterValidator(_check_task)] = Field(
        default=DEFAULT_TASK, exclude_if=lambda name: name == DEFAULT_TASK
    )
    colours: Literal["light", "system"] = Field(default="light", exclude_if=lambda scheme: scheme == "light")

    @field_validator("title")
    @classmethod
    def _need_title(cls, title: str, info: ValidationInfo) -> str:
        """Refuse an empty title where a study is to be built: those frozen with one stay readable."""
        if info.context == TO_BUILD and not title.strip():
            raise ValueError("Give the study a title: participants read it on every page.")
        return title


class ClassifierSource(Section):
    """``[classifier]``: ``scenes``, ``scenes:NAME`` (docs/zoo.md), ``torchvision:NAME``, ``timm:NAME``, ``hf:NAME``,
    ``clip:NAME?names=FILE``, an exported program, or ``FILE.py:build``. Files are relative to the study file
    (docs/how-to/add-a-model.md).

    ``resize = "whole"`` squashes images to the input of a torchvision, timm or CLIP network, where its own transforms
    would crop.
    """

    model: str
    resize: Literal["transforms", "whole"] = Field(default="transforms", exclude_if=lambda how: how == "transforms")


class ImageSource(BaseModel):
    """``[sets.*]``: a registered image set and its own settings (``split = ...``, ``path = ...``)."""

    model_config = ConfigDict(frozen=True, extra="allow")
    set: str

    @property
    def settings(self) -> dict[str, Any]:
        """Settings for the image set."""
        return dict(self.__pydantic_extra__ or {})

    @model_validator(mode="after")
    def _check_set(self) -> ImageSource:
        require(IMAGE_SETS, self.set)
        return self


class Sets(Section):
    """``[sets]``: the example pool, standard images, and natural-adversarial ones, which only predictions need."""

    pool: ImageSource
    standard: ImageSource
    adversarial: ImageSource | None = Field(default=None, exclude_if=lambda source: source is None)

    @property
    def by_role(self) -> dict[str, ImageSource]:
        """The sets that there are."""
        sources = {"pool": self.pool, "standard": self.standard, "adversarial": self.adversarial}
        return {role: source for role, source in sources.items() if source is not None}


class Saliency(Section):
    """``[saliency]``: the method of the heatmaps, its parameters, and their opacity over the image.

    ``method`` is a registered name, ``FILE.py:function``, ``heatmaps:FOLDER`` (both relative to the study file), or
    ``own``: the network's own ``explain``.
    ``common_masks`` uses the same random draws for all trials, so that heatmaps are comparable between trials too.
    ``drawing`` sets what the colours show: ``evidence``, values minus the method's zero and faded within their standard
    error, or ``values``, the heatmap's raw values (for Bayesian teaching, the expected mask).
    """

    method: str = "bayesian_teaching"
    common_masks: bool = False
    opacity: Proportion = 0.7
    drawing: Literal["evidence", "values"] = Field(default="evidence", exclude_if=lambda how: how == "evidence")
    parameters: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_method(self) -> Saliency:
        if is_external(self.method):
            return self  # opened with the study's other files (`study.network.methods`), relative to the study file
        require(METHODS, self.method)
        try:
            parse_parameters(open_registered(self.method), self.parameters)
        except ForetellError as error:
            raise ValueError(str(error)) from None
        return self


class Display(Section):
    """``[display]``: side length of the images shown, px."""

    size: Annotated[int, Field(ge=64, le=1024)] = 320


class StudyConfig(Procedure):
    """A whole study file."""

    study: Identity
    classifier: ClassifierSource
    sets: Sets
    trials: Trials = Trials()
    saliency: Saliency = Saliency()
    teaching: Teaching = Teaching()
    conditions: tuple[str, ...] = ("none", "saliency", "examples", "both")
    allocation: Allocation = Allocation()
    display: Display = Display()
    adaptive: Adaptive | None = Field(default=None, exclude_if=lambda adaptive: adaptive is None)
    place: Place = Field(default=Place(), exclude_if=lambda place: place == Place())
    units: Units = Field(default=Units(), exclude_if=lambda units: units == Units())
    coding: Coding = Field(default=Coding(), exclude_if=lambda coding: coding == Coding())
    attributes: Attributes = Field(default=Attributes(), exclude_if=lambda attributes: attributes == Attributes())
    texts: dict[str, str] = Field(default_factory=dict)
    analysis: AnalysisPlan = AnalysisPlan()

    @model_validator(mode="after")
    def _check_names(self, info: ValidationInfo) -> StudyConfig:
        for name in self.conditions:
            require(CONDITIONS, name)
        if len(set(self.conditions)) != len(self.conditions) or not self.conditions:
            raise ValueError("conditions: name each condition once, and at least one.")
        for name in self.conditions:
            if CONDITIONS[name].policy == self.teaching.policy:
                raise ValueError(
                    f"conditions: {name!r} would show the same examples as the other conditions, because "
                    f'teaching.policy = "{self.teaching.policy}". Leave it out, or set another policy.'
                )
        self._check_task()
        self._check_blocks()
        self._check_each_option()
        self._check_units(to_build=info.context == TO_BUILD)
        within, names = self.allocation.within, self.analysis.covariates
        if within:
            check_within(self.conditions, self._per_type, has_blocks=self.blocks is not None)
        check_sittings(self, self.conditions, self._per_type, names, within=within)
        refuse_unplaced(self.task, self.place, self)
        has = (self.allocation.within, self.trials.strata is not None, self.most)
        refuse_unadaptable(self.adaptive, self.task, self, self.analysis, has)
        refuse_unwritten(self.task, self.coding, self, self.analysis)
        known = dict.fromkeys(list_default_texts(self.language, self.task), "")
        for key in self.texts:
            require(Registry("text", known), key)
        self.analysis.check_conditions(self.conditions, to_build=info.context == TO_BUILD)
        return self

    def _check_task(self) -> None:
        """Refuse a task that cannot be put in the study's language, or with one of its conditions."""
        try:
            task = self.task
        except ForetellError as error:
            raise ValueError(f'{error} Leave it out, or set study.task = "{DEFAULT_TASK}".') from None
        if fault := find_language_fault(self.language, task):
            raise ValueError(f"study.task: {fault}")
        if fault := find_scoring(self, self.analysis, task):
            raise ValueError(fault)
        self._check_numbered()
        for name in self.conditions:
            if reason := task.refuse(CONDITIONS[name]):
                raise ValueError(
                    f"conditions: {name!r} cannot go with the task {task.name!r}, because {reason}. Leave it out."
                )

    def _check_units(self, *, to_build: bool) -> None:
        """Refuse what does not go with units or attributes, and predictions without adversarial images."""
        is_set = {
            "sets.adversarial": self.sets.adversarial is not None,
            "trials": self.trials != Trials(practice=self.trials.practice),
            "saliency": self.saliency != Saliency(),
            "teaching": self.teaching != Teaching(),
            "blocks": self.blocks is not None,
            "analysis.exclusions.least_accuracy": self.analysis.exclusions.least_accuracy is not None,
        }
        refuse_unasked(self.task, self.units, [name for name, given in is_set.items() if given and to_build])
        del is_set["saliency"]
        is_set |= {
            "pacing.catch": self.pacing.catch > 0,
            "pacing.confidence": self.pacing.confidence,
            "keys": self.keys != Keys(),
            "allocation.within": self.allocation.within,
        }
        refuse_unlisted(self.task, self.attributes, [name for name, given in is_set.items() if given])
        if self.task.is_of_predictions and self.sets.adversarial is None:
            raise ValueError("sets.adversarial: name the natural-adversarial images.")

    def _check_numbered(self) -> None:
        """Refuse what does not go with more than two options or with a scale, and two levels that read the same."""
        count, name = self.task.count, self.task.name
        if count > TWO and self.keys != Keys():
            raise ValueError(f"keys: the keys of the task {name!r} are the digits 1 to {count}. Remove the section.")
        if not self.task.is_scale:
            return
        if self.pacing.confidence:
            raise ValueError(f"pacing.confidence: the task {name!r} asks for the confidence already. Set it to false.")
        buttons = WordedTask(self.task, {**list_default_texts(self.language, self.task), **self.texts}).buttons or ()
        if (same := next((text for text in buttons if buttons.count(text) > 1), None)) is not None:
            raise ValueError(f"texts: two levels of the task {name!r} read {same!r}. Give each its own words.")

    def _check_blocks(self) -> None:
        """Refuse blocks of more trials than the study can have, and those of a task with two responses."""
        if self.blocks is not None and self.task.steps > 1:
            raise ValueError(f"blocks: a trial of the task {self.task.name!r} has two responses. Remove the section.")
        if self.blocks is not None and (shortage := self.blocks.find_shortage(self.most)):
            raise ValueError(shortage)

    def _check_each_option(self) -> None:
        """Refuse a heatmap for each option by a method that does not explain a class, and in training blocks."""
        for name in (name for name in self.conditions if CONDITIONS[name].explains_each_option):
            if sign_of(self.saliency.method, self.saliency.parameters).kind not in OF_ONE_CLASS:
                raise ValueError(
                    f"conditions: the heatmaps of {self.saliency.method!r} do not say what speaks for a class, and "
                    f"{name!r} shows one for each. Leave the condition out, or set a method that does, such as "
                    '"grad_cam".'
                )
            if self.blocks is not None and self.task.options > TWO:
                raise ValueError(
                    f"conditions: {name!r} cannot go with [blocks] and more than two options. Remove one of them."
                )

    @model_validator(mode="before")
    @classmethod
    def _plan_by_design(cls, content: Any) -> Any:
        return plan_contrasts(plan_adaptive(plan_within(plan_attributes(plan_units(content)))))

    @property
    def most(self) -> int:
        """Number of trials if nothing is missing."""
        if self.task.of_attributes:
            return self.attributes.trials
        return self.units.most if self.task.of_units else self.trials.most

    @property
    def _per_type(self) -> dict[str, int]:
        """Number of trials of each type if nothing is missing; each of those about attributes has all of them."""
        types = (GRID,) if self.task.of_attributes else self.task.types
        return {str(kind): self.most // len(types) for kind in types}

    @property
    def plan(self) -> AnalysisPlan:
        """The analysis plan, with the participants of ``[allocation]`` if it sets none."""
        return self.analysis.with_quota(self.allocation.per_condition)

    @property
    def task(self) -> Task:
        """What participants are asked."""
        return open_task(self.study.task, self.trials.options, self.trials.levels)

    @property
    def digest(self) -> str:
        """SHA-256 of the settings, whatever their order in the file."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def read_frozen(settings: dict[str, Any]) -> StudyConfig:
    """Read the settings that a bundle keeps.

    Raises
    ------
    ForetellError
        They name what is not here, such as a method of a package that is not installed.
    """
    try:
        plan = {"analysis": complete(settings["analysis"])} if "analysis" in settings else {}
        return StudyConfig.model_validate(settings | plan)
    except ValidationError as error:
        raise ForetellError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


def read(path: Path, *, to_build: bool = True) -> StudyConfig:
    """Read and check a study file; without ``to_build`` also one whose study was frozen without a title.

    Raises
    ------
    ForetellError
        Missing file, invalid TOML or wrong values: every fault at once, one line each, with its place and the remedy.
    """
    try:
        return load_toml(path, StudyConfig, PRESENT_NAMES, TO_BUILD if to_build else None)
    except FileNotFoundError:
        raise ForetellError(f"There is no study file {path}. Copy data/studies/demo.toml and change it.") from None
