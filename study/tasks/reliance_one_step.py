"""Respond once, with the AI's label and its explanation next to the image: `reliance` without its first step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from study.bundle import Trial
from study.locales import TASK_TEXTS
from study.tasks.reliance import TASK as RELIANCE
from study.tasks.task import FINAL, FIRST
from study.tasks.theory import ShownExplanations, Theory


def compute_p_right(theory: Theory, trial: Trial, shown: ShownExplanations, deviation: float) -> float:
    """Return the probability of taking a right label, or the other name where it is wrong."""
    accepts = theory.p_accept(trial, shown, deviation)
    return accepts if trial.truth == trial.target else 1.0 - accepts


def _join(two_steps: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    return {**{key: text for key, text in two_steps.items() if key not in (FIRST, FINAL)}, **own}


TASK = replace(
    RELIANCE,
    name="reliance_one_step",
    p_right=compute_p_right,
    act="give the correct response",
    outcome="Correct responses",
    meaning="the participant's response is the true class: choice equals truth",
    first_step=None,
    texts={
        language: _join(texts, TASK_TEXTS["reliance_one_step"][language])
        for language, texts in TASK_TEXTS["reliance"].items()
    },
)
