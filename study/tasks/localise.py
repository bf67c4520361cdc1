"""Mark the place of the evidence for the AI's label, which is shown. The heatmap of the image is sealed.

Source: the click experiment of Colin et al. (2026). A mark is correct in the region of the heatmap: the smallest set of
cells that holds a stated share of the positive evidence (`study.places.region`).
"""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition
from study.locales import TASK_TEXTS
from study.places.simulated import compute_central_hits
from study.tasks.task import Option, Task
from study.tasks.theory import ShownExplanations, Theory

MAPPED = "mapped_examples"
"""The condition whose examples have heatmaps, while the image itself has none."""


def find_right(trial: Trial) -> Option:  # noqa: ARG001
    """Return a: what is stored of a mark in the region."""
    return "a"


def find_sealed(trial: Trial) -> str:
    """Return the AI's label: the place itself is shown by the heatmap."""
    return trial.target


def compute_p_right(theory: Theory, trial: Trial, shown: ShownExplanations, deviation: float) -> float:
    """Return the probability of a mark in the region.

    Those that predict the AI better than by guessing know what it looked at, with probability q = 2 P(predict) - 1.
    Everything else lands near the middle of the image, and in the region as often as that alone gives.
    """
    knows = max(0.0, 2.0 * theory.p_ai(trial, shown, deviation) - 1.0)
    return knows + (1.0 - knows) * compute_central_hits(trial.region)


def refuse(condition: Condition) -> str:
    """Refuse the conditions that show where the AI looked, and those that explain by something else than examples."""
    if condition.shows_saliency:
        return "it shows the heatmap or a part of the image itself, which is what participants are to find"
    if condition.explains_otherwise and condition.name != MAPPED:
        return "it explains a choice between two names, and participants see only the one that the AI gave"
    return ""


TASK = Task(
    "localise",
    find_right,
    find_sealed,
    compute_p_right,
    aim="Do explanations help participants find what the AI looked at?",
    act="mark a place of the AI's evidence",
    outcome="Marks in the region of the AI's evidence",
    meaning="the participant's mark is in the region of the AI's heatmap: choice is inside",
    choices=("inside", "outside"),
    shows_label=True,
    place="point",
    texts=TASK_TEXTS["localise"],
    refuse=refuse,
)
