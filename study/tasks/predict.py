"""Predict the AI: which of two classes, or of up to five, did it choose? The prediction is sealed.

Forward simulation (Doshi-Velez & Kim, 2017, arXiv:1702.08608), with a foil as in Folke et al. (2021, arXiv:2106.09106).
With more options, after Shen & Huang (2020, HCOMP, arXiv:2008.11721).
"""

from __future__ import annotations

from study.bundle import Trial
from study.locales import TASK_TEXTS
from study.tasks.task import Option, Task
from study.tasks.theory import ShownExplanations, Theory


def find_right(trial: Trial) -> Option:
    """Return the option that the AI chose."""
    return trial.ai_choice


def find_sealed(trial: Trial) -> str:
    """Return the AI's prediction."""
    return trial.target


def compute_p_right(theory: Theory, trial: Trial, shown: ShownExplanations, deviation: float) -> float:
    """Return the probability of predicting the AI."""
    return theory.p_ai(trial, shown, deviation)


TASK = Task(
    "predict",
    find_right,
    find_sealed,
    compute_p_right,
    aim="Do explanations help participants predict the AI?",
    act="predict the AI correctly",
    outcome="Correct predictions of the AI",
    meaning="the participant predicted the AI: choice equals category",
    most_options=5,
    texts_of_more=TASK_TEXTS["predict_several"],
)
