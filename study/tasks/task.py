"""A task: what participants are asked on a trial, what is sealed until they respond, how a response is scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from core.errors import ForetellError
from study.bundle import Trial
from study.conditions.condition import Condition
from study.tasks.theory import ShownExplanations, Theory

Option = Literal["a", "b"]
CHOICE = "choice_"
"""Prefix of the text that is on the button of a choice."""
LABEL = "label"
"""Key of the sentence that shows the AI's label; its placeholder is ``{name}``."""


EXAMPLE = "ui.picture_label"
"""Key of the words that a screen reader has for an example of the label; ``{number}`` and ``{sample}`` are numbers."""


def accept_every_condition(condition: Condition) -> str:
    """Refuse no condition."""
    del condition
    return ""


@dataclass(frozen=True)
class Task:
    """One task. Every response is one of two options, a and b.

    Attributes
    ----------
    find_right
        The option that is right on a trial; it never depends on the condition.
    find_sealed
        What stays on the server until the response, in words; it fills ``{name}`` of the feedback in practice.
    p_right
        What a simulated participant does: the probability of the right option, from their theory, the trial as their
        condition shows it, the explanations shown and their own deviation (log-odds).
    aim
        The question that a study asks by this task: the report's title.
    act
        What participants do where they are correct: "explanations change how often participants …".
    outcome
        What is counted, in the plural: the axis of the report's Figure 1.
    meaning
        When a response is correct, in one clause.
    choices
        Names of options a and b, the same on every trial; the text ``choice_NAME`` is on the button. None: the two
        classes of the trial.
    shows_label
        Whether participants see the AI's label with the image, in the text ``label``, and of the examples only those
        of that label.
    texts
        By language: the texts that it has instead of the catalogue's, and those that only it has.
    refuse
        Why a condition cannot go with it, as the end of a sentence; empty where it can.
    """

    name: str
    find_right: Callable[[Trial], Option]
    find_sealed: Callable[[Trial], str]
    p_right: Callable[[Theory, Trial, ShownExplanations, float], float]
    aim: str
    act: str
    outcome: str
    meaning: str
    choices: tuple[str, str] | None = None
    shows_label: bool = False
    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    refuse: Callable[[Condition], str] = accept_every_condition

    def __post_init__(self) -> None:
        """Refuse a task without the texts that it needs, in one of its languages."""
        needed = [CHOICE + name for name in self.choices or ()] + ([LABEL, EXAMPLE] if self.shows_label else [])
        for language, texts in self.texts.items() or [("any language", {})]:
            missing = [key for key in needed if key not in texts]
            if missing and (texts or language not in self.texts):
                raise ForetellError(f"The task {self.name!r} has no text {', '.join(missing)} in {language}: add it.")

    def name_choice(self, trial: Trial, option: Option) -> str:
        """Return the name of an option as exported: a class, or one of `choices`."""
        return (self.choices or trial.options)[option == "b"]

    def list_assets(self, trial: Trial) -> tuple[str, ...]:
        """List the images (SHA-256) that the page loads before a response: the same in every condition.

        Where the label is shown, images of the other option are none of them: nobody is to see which class it is.
        """
        return trial.assets.list_of_option(trial.target) if self.shows_label else trial.assets.every


@dataclass(frozen=True)
class WordedTask:
    """A task in the texts of one study, as they are frozen with it."""

    task: Task
    texts: Mapping[str, str]

    @property
    def buttons(self) -> tuple[str, str] | None:
        """What is on the buttons of options a and b on every trial; None where each trial has its own."""
        one = self.task.choices
        return None if one is None else (self.texts[CHOICE + one[0]], self.texts[CHOICE + one[1]])

    def name_options(self, trial: Trial) -> tuple[str, str]:
        """Return what is on the buttons of options a and b of a trial."""
        return self.buttons or trial.options

    def write_label(self, name: str) -> str | None:
        """Write the sentence that shows the AI's label; None where the task does not show it."""
        return self.texts[LABEL].replace("{name}", name) if self.task.shows_label else None
