"""The study files that came with Foretell, with what each measures and a screenshot of a trial."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from core.text import read_text
from study.workspace.workspace import ROOT

FOLDER = ROOT / "data" / "studies"
TRIALS = FOLDER / "trials"
"""Screenshots of a trial, made by ``python -m docs.trial_screenshots``."""


class Template(NamedTuple):
    """A study file to begin with.

    Attributes
    ----------
    title
        What it is.
    measures
        What its participants do, and what the analysis measures.
    trial
        Name of the screenshot of a trial, which studies of the same task share.
    """

    title: str
    measures: str
    trial: str


TEMPLATES: Mapping[str, Template] = {
    "demo": Template(
        "The demo: drawn scenes and their network",
        "Participants predict which of two labels the AI gave: how often they are right in each condition.",
        "demo",
    ),
    "several-classes": Template(
        "One of five classes",
        "Participants predict which of five labels the AI gave, with and without heatmaps; chance is one in five.",
        "several-classes",
    ),
    "distinction": Template(
        "A heatmap for each of four classes",
        "Participants tell from the heatmaps of four labels which one the AI gave; chance is one in four.",
        "distinction",
    ),
    "meta-predictor": Template(
        "Training, then test",
        "Participants learn from explanations and the AI's labels, and then predict it for images alone: utility.",
        "meta-predictor",
    ),
    "accept-reject": Template(
        "Right or wrong?",
        "The AI's label is shown, and participants accept or reject it: how often they are right.",
        "accept-reject",
    ),
    "agreement": Template(
        "Right or wrong, and how confident?",
        "The AI's label is shown, with four levels: how often, and how confidently, participants are right.",
        "agreement",
    ),
    "rating": Template(
        "Ratings of an explanation",
        "The AI's label is shown, and participants rate a statement about it: mean levels, and no response is correct.",
        "rating",
    ),
    "reliance": Template(
        "Two responses to each image",
        "Participants respond alone, and again with the AI's label and its explanation: when they rely on the AI.",
        "reliance",
    ),
    "localise": Template(
        "Where did the AI look?",
        "The AI's label is shown, and participants mark the place of the evidence: how often they find its region.",
        "localise",
    ),
    "highlight": Template(
        "What did the AI look at?",
        "The AI's label is shown, and participants brush over the evidence: agreement with the heatmap.",
        "highlight",
    ),
    "unit-choice": Template(
        "What does a unit respond to?",
        "Participants choose which of two images activates a unit more, with and without its reference images.",
        "unit-choice",
    ),
    "unit-counterfactual": Template(
        "What does a unit need to see?",
        "Participants choose which of two occlusions of an image leaves a unit more active, references shown or not.",
        "unit-counterfactual",
    ),
    "name": Template(
        "What would you call a unit?",
        "Participants write what a unit responds to, and two blinded raters code it: how often both find a match.",
        "name",
    ),
    "discover": Template(
        "What does the AI go by?",
        "Participants choose the attributes of images that the AI uses, with and without heatmaps: hits, false alarms.",
        "discover",
    ),
    "folke2021": Template(
        "The paper's study: ResNet-50 and ImageNet",
        "The demo's task with photographs: 90 trials in the design of Folke et al. (2021).",
        "demo",
    ),
    "two-ais-scenes": Template(
        "Two AIs, first study",
        "The demo's task with an AI that reads the context of an object: compared with the second study.",
        "demo",
    ),
    "two-ais-blind": Template(
        "Two AIs, second study",
        "The demo's task with an AI that cannot read the context: compared with the first study.",
        "demo",
    ),
}
"""By name, in the order in which they are offered."""


def path_of(name: str) -> Path:
    """Return the study file of a template."""
    return FOLDER / f"{name}.toml"


def read_note(name: str) -> str:
    """Return the comment that a study file begins with: its publication, and what differs from it."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), read_text(path_of(name)).splitlines())
    noted = [line.removeprefix("#").strip() for line in lines]
    return re.sub(r" ?Copy this file to [^.]*\.", "", " ".join(noted))


def read_title(name: str) -> str:
    """Return the title that participants read, which a copy keeps unless it has its own."""
    return str(tomllib.loads(read_text(path_of(name)))["study"]["title"])


def templates() -> dict[Path, str]:
    """Return the study files to begin with, each with what it is."""
    return {path_of(name): one.title for name, one in TEMPLATES.items()}
