"""What is known of a question before it is asked: its topic, its words, its drawing and figure, and its cost.

The record is next to the question's function, in its decorator `layer_question`; `inquiry.layers.QUESTIONS` names
the function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ParamSpec, TypeVar

import pandas as pd
import plotly.graph_objects as go
from PIL import Image

from inquiry.layers import QUESTIONS
from inquiry.layers.costs import CostRule
from inquiry.layers.inspection import LayerInspection

Question = TypeVar("Question", bound=Callable[..., pd.DataFrame])
Given = ParamSpec("Given")


class Topic(StrEnum):
    """The topics of the page, in its order."""

    REPRESENTATIONS = "Representations"
    ROBUSTNESS = "Robustness"
    UNITS = "Units"
    EXPLANATIONS = "Explanations"
    TRAINING = "Training"
    IMAGE_SET = "Image set"
    OTHER = "Other"


@dataclass(frozen=True, kw_only=True)
class TableWords:
    """How the table of a question is written.

    Attributes
    ----------
    headings
        Of columns that have other meanings here than in other tables, or other names in the figure.
    shares
        Columns that are written in percent, as a pattern, without the endings of limits and errors.
    codes
        Columns of codes, and how a code is written.
    printed
        Columns of the short table that the command prints, unless they are empty; without them it prints none.
    noted
        The column that tells what a note is about, if the notes do not name it; "all" is the whole.
    notes_are_results
        Whether notes are results, such as no difference from chance, and no warnings.
    """

    headings: Mapping[str, str] = field(default_factory=dict)
    shares: str = ""
    codes: Mapping[str, Callable[[str], str]] = field(default_factory=dict)
    printed: tuple[str, ...] = ()
    noted: str = ""
    notes_are_results: bool = False

    def list_shares(self, columns: Iterable[str]) -> set[str]:
        """List the columns that are written in percent."""
        pattern = f"(?:{self.shares})(?:_low|_high|_error)?"
        return {name for name in columns if self.shares and re.fullmatch(pattern, name)}


@dataclass(frozen=True)
class Drawing:
    """Images that show what a question found.

    Attributes
    ----------
    draw
        Returns images by name, after the question was asked.
    caption
        What they show; the name of each follows it.
    captions
        By name, of those that ``caption`` does not describe.
    padded
        Whether narrow ones are widened by empty space, so that the tiles of several keep one size on the page.
    """

    draw: Callable[[LayerInspection], Mapping[str, Image.Image]]
    caption: str
    captions: Mapping[str, str] = field(default_factory=dict)
    padded: bool = False

    def describe(self, name: str) -> str:
        """Describe one of the images."""
        return self.captions.get(name) or f"{self.caption} {name}"


@dataclass(frozen=True, kw_only=True)
class QuestionRecord:
    """What is known of a question.

    Attributes
    ----------
    topic
        The topic under which the page offers it.
    asks
        What it is about, in the width of a selectbox.
    reading
        What the figure shows, and how it is read.
    publications
        Those of the method, as the documentation of the function cites them, and their addresses.
    layered
        Whether it is about layers; else it is about the whole network.
    compares
        Whether it compares the layers of two networks, or of one with itself.
    pairs
        What the comparison is called, if it compares no layer with itself.
    own_images
        Whether it has images of its own and leaves those of the set aside.
    labels
        Labels of parameters whose names say little.
    lists
        Parameters that are names of a known list, separated by commas.
    table
        How its table is written.
    drawing
        What is drawn of its result.
    figure
        Its figure, made of the table; None: the table alone is shown.
    cost
        What it costs; None: unknown.
    """

    topic: Topic = Topic.OTHER
    asks: str = ""
    reading: str = ""
    publications: Mapping[str, str] = field(default_factory=dict)
    layered: bool = False
    compares: bool = False
    pairs: str = ""
    own_images: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    table: TableWords = field(default_factory=TableWords)
    drawing: Drawing | None = None
    figure: Callable[[pd.DataFrame], go.Figure] | None = None
    cost: CostRule | None = None


UNKNOWN = QuestionRecord()
"""The record of a question that has none: a plain function of a package, or one that is missing."""


def _decorate(make: Callable[Given, QuestionRecord]) -> Callable[Given, Callable[[Question], Question]]:
    """Return the decorator that puts a record, made of the decorator's arguments, on a function."""

    def layer_question(*args: Given.args, **given: Given.kwargs) -> Callable[[Question], Question]:
        record = make(*args, **given)

        def keep(function: Question) -> Question:
            function.record = record  # type: ignore[attr-defined]
            return function

        return keep

    return layer_question


layer_question = _decorate(QuestionRecord)
"""Give a function ``question(inspected, progress, **parameters)`` its `QuestionRecord`."""


def record_of(name: str) -> QuestionRecord:
    """Return the record of a question; `UNKNOWN` also where there is no such question."""
    return QUESTIONS.record_of(name, UNKNOWN)


def group_questions() -> dict[Topic, tuple[str, ...]]:
    """Group the usable questions by topic, in the order of the topics and of the registry; no topic is empty."""
    records = {name: record_of(name) for name, _ in QUESTIONS.usable()}
    groups = {topic: tuple(name for name, one in records.items() if one.topic is topic) for topic in Topic}
    return {topic: names for topic, names in groups.items() if names}
