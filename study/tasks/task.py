"""A task: what participants are asked on a trial, what is sealed until they respond, how a response is scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from core.errors import ForetellError
from study.bundle import LETTERS, OF_ATTRIBUTES, OF_UNITS, TRIAL_TYPES, Trial, TrialType
from study.conditions.condition import Condition, ShownAssets, plain_examples
from study.places.marks import Kind
from study.tasks.theory import ShownExplanations, Theory

Option = str
"""An option of a trial, by its letter: a or b, a to e of several classes, or a to i of a scale, whose lowest is a."""
TWO = 2
"""Classes to choose from, unless a study has more."""
CHOICE = "choice_"
"""Prefix of the text that is on the button of a choice."""
LABEL = "label"
"""Key of the sentence that shows the AI's label; its placeholder is ``{name}``."""


FIRST = "first"
"""Key of the sentence that repeats the first response in the second step; its placeholder is ``{name}``."""
FINAL = "question_final"
"""Key of the question of the second step."""
CONFIRM = "confirm"
"""Key of the text on the only button of a trial whose response is a place, a text or a set of attributes."""
EXAMPLE = "ui.picture_label"
"""Key of the words that a screen reader has for an example of the label; ``{number}`` and ``{sample}`` are numbers."""


def accept_every_condition(condition: Condition) -> str:
    """Refuse no condition."""
    del condition
    return ""


def refuse_examples(condition: Condition) -> str:
    """Refuse conditions that show examples: a teaching set is of two classes, the AI's prediction and one foil."""
    if condition.shows_examples and not condition.explains_each_option:
        return "it shows examples of two classes, which would give the AI's away"
    return ""


def find_none(trial: Trial) -> Option:
    """Return no option: whatever participants choose, nothing is right or wrong."""
    del trial
    return ""


@dataclass(frozen=True)
class FirstStep:
    """A response before the AI's label and the explanation are shown: its trials have two steps.

    Attributes
    ----------
    p_right
        What a simulated participant does in it: the probability of the right option, from their theory, the trial and
        their own deviation (log-odds).
    p_final
        The probability of the right option in the second step, from their theory, the trial as their condition shows
        it, the explanations shown, their deviation, how often they follow an AI that contradicts them, and whether
        their first response was right.
    """

    p_right: Callable[[Theory, Trial, float], float]
    p_final: Callable[[Theory, Trial, ShownExplanations, float, float, bool], float]


@dataclass(frozen=True)
class Task:
    """One task. A response is one of two options, a and b, one of several classes, a level, a place or a text.

    Attributes
    ----------
    find_right
        The option that is right on a trial; it never depends on the condition. Of a scale, the letters of all levels
        that are right, the mildest first. `find_none` where no response is right or wrong: the level of the scale is
        then what is analysed.
    find_sealed
        What stays on the server until the response, in words; it fills ``{name}`` of the feedback in practice, which a
        task without a right option does not have.
    p_right
        What a simulated participant does: the probability of the right option, from their theory, the trial as their
        condition shows it, the explanations shown and their own deviation (log-odds). Without a right option, that of
        a level in the upper half of the scale.
    aim
        The question that a study asks by this task: the report's title.
    act
        What participants do where they are correct: "explanations change how often participants …"; or, if it begins
        with "how", the whole of what explanations may change.
    outcome
        What is counted, in the plural: the axis of the report's Figure 1. Without a right option, what is averaged.
    meaning
        When a response is correct, in one clause; without a right option, what a level means.
    choices
        Names of the options, the same on every trial; the text ``choice_NAME`` is on the button. More than two are a
        scale, the lowest level first. None: the two classes of the trial.
    options, most_options
        How many classes a trial has to choose from where there are no ``choices``, and how many a study may set.
    texts_of_more
        The texts with more than two options.
    shows_label
        Whether participants see the AI's label with the image, in the text ``label``. Where the options are
        ``choices``, they see only the examples of that label.
    first_step
        What participants do before they see the label and the explanation; None where a trial has one response.
    place
        The kind of mark that participants put on the image; None where they choose an option. The ``choices`` are then
        the two outcomes of a mark, correct and incorrect, and no buttons.
    of_units
        Whether a trial asks about a unit of the network instead of a prediction, and by what: which of two ``"images"``
        activates it more, or which of two ``"occlusions"`` of one image, or what to call it: ``"names"``. The
        ``choices`` of two images are their sides, the same for all participants. None of predictions.
    is_written
        Whether the response is a text, which two raters code after it was given. The ``choices`` are then the two
        outcomes of the codes, correct and incorrect, and no buttons.
    of_attributes
        Whether a trial asks which attributes the AI uses: the response is a set of them. The ``choices`` are then the
        two outcomes of a set, exact and inexact, and no buttons.
    texts
        By language: the texts that it has instead of the catalogue's, and those that only it has.
    refuse
        Why a condition cannot go with it, as the end of a sentence; empty where it can.
    rescale
        Makes the task with so many levels, or refuses their number; None where a study cannot set it.
    """

    name: str
    find_right: Callable[[Trial], Option]
    find_sealed: Callable[[Trial], str]
    p_right: Callable[[Theory, Trial, ShownExplanations, float], float]
    aim: str
    act: str
    outcome: str
    meaning: str
    choices: tuple[str, ...] | None = None
    options: int = TWO
    most_options: int = TWO
    texts_of_more: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    shows_label: bool = False
    first_step: FirstStep | None = None
    place: Kind | None = None
    of_units: Literal["images", "occlusions", "names"] | None = None
    is_written: bool = False
    of_attributes: bool = False
    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    refuse: Callable[[Condition], str] = accept_every_condition
    rescale: Callable[[int], Task] | None = None

    def __post_init__(self) -> None:
        """Refuse a task without the texts that it needs, in one of its languages, and a scale that nobody can press."""
        most = len(LETTERS) if self.first_step is None else 2
        if self.choices is not None and not 2 <= len(self.choices) <= most:
            raise ForetellError(f"The task {self.name!r} has {len(self.choices)} choices: give it 2 to {most}.")
        buttons = [CONFIRM] if self.is_confirmed else [CHOICE + name for name in self.choices or ()]
        needed = buttons + ([LABEL] if self.shows_label else [])
        needed += ([EXAMPLE] if self.hides_foil else []) + ([FIRST, FINAL] if self.steps > 1 else [])
        for language, texts in self.texts.items() or [("any language", {})]:
            missing = [key for key in needed if key not in texts]
            if missing and (texts or language not in self.texts):
                raise ForetellError(f"The task {self.name!r} has no text {', '.join(missing)} in {language}: add it.")

    def with_options(self, options: int) -> Task:
        """Return the task with so many classes to choose from.

        Raises
        ------
        ForetellError
            It has no trials with so many.
        """
        if options == self.options:
            return self
        if not TWO <= options <= self.most_options:
            most = f"has {TWO} to {self.most_options}" if self.most_options > TWO else f"has {TWO}"
            raise ForetellError(f"trials.options is {options}, but a trial of the task {self.name!r} {most}.")
        return replace(self, options=options, texts=self.texts_of_more, refuse=refuse_examples)

    def with_levels(self, levels: int | None) -> Task:
        """Return the task with so many levels; with its own number where a study sets none.

        Raises
        ------
        ForetellError
            It has no scale whose levels a study can set, or not so many.
        """
        if levels is None:
            return self
        if self.rescale is None:
            raise ForetellError(f"trials.levels is {levels}, but the task {self.name!r} has no levels to set.")
        return self.rescale(levels)

    @property
    def is_scored(self) -> bool:
        """Whether responses are right or wrong."""
        return self.find_right is not find_none

    @property
    def is_scored_at_once(self) -> bool:
        """Whether a response is right or wrong when it is given: a text is so once its raters have coded it."""
        return self.is_scored and not self.is_written

    @property
    def is_of_predictions(self) -> bool:
        """Whether a trial is about one prediction of the AI, which is right or wrong."""
        return not (self.of_units or self.of_attributes)

    @property
    def is_confirmed(self) -> bool:
        """Whether a trial has one button, which confirms a mark, a text or a set."""
        return self.place is not None or self.is_written or self.of_attributes

    @property
    def tells(self) -> bool:
        """Whether practice tells what is right: not where that is the same in all trials, or nothing is yet."""
        return self.is_scored_at_once and not self.of_attributes

    @property
    def count(self) -> int:
        """Number of buttons of a trial; more than two are numbered from the left, and their keys are the digits."""
        if self.is_confirmed:
            return 1
        return self.options if self.choices is None else len(self.choices)

    @property
    def chance(self) -> float | None:
        """Probability of a correct response by guessing: 1/k of k classes, 1/2 of ``choices``; None of others."""
        return None if self.is_confirmed else 1 / self.options

    def explain_chance(self) -> str:
        """Say what chance is, for a reader of accuracies; empty where it is one half, as readers expect."""
        if self.place is not None:
            return "The same marks on the regions of the other images say what chance is."
        if not self.has_several:
            return ""
        return (
            f"Participants chose from {self.options} classes, so chance is 1/{self.options} ({1 / self.options:.0%})."
        )

    @property
    def has_several(self) -> bool:
        """Whether the options are more than two classes: each participant has them in an order of their own."""
        return self.options > TWO

    @property
    def steps(self) -> int:
        """Number of responses to a trial."""
        return 1 if self.first_step is None else 2

    @property
    def hides_foil(self) -> bool:
        """Whether nobody is to see which class the other option is: the label is shown, and it is not a button."""
        return self.shows_label and self.choices is not None

    @property
    def is_scale(self) -> bool:
        """Whether the options are the levels of a scale."""
        return self.choices is not None and len(self.choices) > 2

    @property
    def types(self) -> tuple[TrialType, ...]:
        """The types of its trials; of attributes, those of a trial's questions."""
        if self.of_attributes:
            return OF_ATTRIBUTES
        return OF_UNITS if self.of_units else TRIAL_TYPES

    def arrange(self, trial: Trial, condition: Condition) -> ShownAssets:
        """Return the images of a trial in their places; the two to choose from of a unit are so in all conditions.

        The references that activate a unit least and most have the places of the image and of its heatmap. Of a unit
        to name, all conditions show those that activate it most.
        """
        if not self.of_units:
            return condition.shown(trial)
        assets, examples = trial.assets, plain_examples(trial)
        if not condition.shows_examples:
            return ShownAssets(None, assets.target_map if self.is_written else None, examples)
        return ShownAssets(assets.target, assets.target_map, examples)

    def order(self, left_is: Option) -> str:
        """List the letters of the options from left to right: as they are declared, or the other way round."""
        letters = LETTERS[: self.count]
        return letters if left_is == "a" else letters[::-1]

    def name_choice(self, trial: Trial, option: Option) -> str:
        """Return the name of an option as exported: a class, or one of `choices`."""
        return (self.choices or trial.options)[LETTERS.index(option)]

    def find_level(self, option: Option) -> int | None:
        """Return the level of a scale, 1 for the lowest; None of a task without one."""
        return LETTERS.index(option) + 1 if self.is_scale else None

    def list_assets(self, trial: Trial) -> tuple[str, ...]:
        """List the images (SHA-256) that the page loads before the last response: the same in every condition.

        Where the response is a place, no heatmap of the image itself is among them: it shows what is sealed.
        """
        if self.place is not None:
            return trial.assets.list_examples_of(trial.target)
        if self.has_several or self.of_attributes:
            return trial.assets.list_without_examples()
        return trial.assets.list_of_option(trial.target) if self.hides_foil else trial.assets.every


@dataclass(frozen=True)
class WordedTask:
    """A task in the texts of one study, as they are frozen with it."""

    task: Task
    texts: Mapping[str, str]

    @property
    def buttons(self) -> tuple[str, ...] | None:
        """What is on the buttons of the options on every trial; None where each trial has its own."""
        if self.task.is_confirmed:
            return (self.texts[CONFIRM],)
        choices = self.task.choices
        return None if choices is None else tuple(self.texts[CHOICE + name] for name in choices)

    def name_options(self, trial: Trial) -> tuple[str, ...]:
        """Return what is on the buttons of the options of a trial."""
        return self.buttons or trial.options

    def write_label(self, name: str) -> str | None:
        """Write the sentence that shows the AI's label; None where the task does not show it."""
        return self.texts[LABEL].replace("{name}", name) if self.task.shows_label else None
