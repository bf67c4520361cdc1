"""Accept or reject the AI's label, which is shown: is it right? The true class is sealed.

Source: Nguyen, Taesiri & Nguyen (2022), "Visual correspondence-based explanations improve AI robustness and human-AI
team accuracy", NeurIPS, arXiv:2208.00780. A response is scored against the true class of the image, not against what
the AI predicted.
"""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition
from study.locales import TASK_TEXTS
from study.tasks.task import Option, Task
from study.tasks.theory import ShownExplanations, Theory


def find_right(trial: Trial) -> Option:
    """Return a, to accept, where the AI's label is the true class; else b, to reject."""
    return "a" if trial.target == trial.truth else "b"


def find_sealed(trial: Trial) -> str:
    """Return the true class."""
    return trial.truth


def compute_p_right(theory: Theory, trial: Trial, shown: ShownExplanations, deviation: float) -> float:
    """Return the probability of accepting a right label, or of rejecting a wrong one."""
    accepts = theory.p_accept(trial, shown, deviation)
    return accepts if find_right(trial) == "a" else 1.0 - accepts


def refuse(condition: Condition) -> str:
    """Refuse conditions that explain the AI's choice between two names: participants see one of them."""
    if condition.shows_examples and condition.explains_otherwise:
        return "it explains a choice between two names, and participants see only the one that the AI gave"
    return ""


TASK = Task(
    "accept_reject",
    find_right,
    find_sealed,
    compute_p_right,
    aim="Do explanations help participants tell whether the AI is right?",
    act="judge the AI's label correctly",
    outcome="Correct judgements of the AI's label",
    meaning="the participant judged the AI's label correctly, by the true class: right where category equals truth",
    choices=("right", "wrong"),
    shows_label=True,
    texts=TASK_TEXTS["accept_reject"],
    refuse=refuse,
)
