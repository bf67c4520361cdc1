"""Rate a statement about the explanation on a scale: no response is right or wrong, and the level is what is analysed.

Likert ratings as in PASTA (Kazmierczak et al., 2025, arXiv:2411.02470); the statement is the first of the Explanation
Satisfaction Scale (Hoffman, Mueller, Klein & Litman, 2018, arXiv:1812.04608), in words that fit an image without
explanation too.
"""

from __future__ import annotations

from core.errors import ForetellError
from study.bundle import Trial
from study.locales import TASK_TEXTS
from study.tasks.accept_reject import refuse
from study.tasks.task import CHOICE, Task, find_none
from study.tasks.theory import ShownExplanations, Theory

USUAL = 5
"""Levels where a study sets no number."""
SCALES: dict[int, tuple[str, ...]] = {
    3: ("disagree", "neither", "agree"),
    4: ("strongly_disagree", "disagree", "agree", "strongly_agree"),
    5: ("strongly_disagree", "disagree", "neither", "agree", "strongly_agree"),
    6: ("strongly_disagree", "disagree", "somewhat_disagree", "somewhat_agree", "agree", "strongly_agree"),
    7: ("strongly_disagree", "disagree", "somewhat_disagree", "neither", "somewhat_agree", "agree", "strongly_agree"),
}
"""Names of the levels, the lowest first, by their number."""


def find_sealed(trial: Trial) -> str:
    """Return nothing: there is no feedback."""
    del trial
    return ""


def compute_p_agree(theory: Theory, trial: Trial, shown: ShownExplanations, deviation: float) -> float:
    """Return the probability of a level in the upper half: that of accepting the AI's label.

    An explanation moves ratings as far as it moves the participant towards the label, or away from it.
    """
    return theory.p_accept(trial, shown, deviation)


def make_task(levels: int) -> Task:
    """Return the task with so many levels; raises `ForetellError` where there is no scale of them."""
    if levels not in SCALES:
        raise ForetellError(
            f"trials.levels is {levels}, but a scale of the task 'rating' has {min(SCALES)} to {max(SCALES)} levels."
        )
    others = {CHOICE + name for names in SCALES.values() for name in names if name not in SCALES[levels]}
    return Task(
        "rating",
        find_none,
        find_sealed,
        compute_p_agree,
        aim="Do explanations change how participants rate what they see?",
        act="how highly participants rate",
        outcome="Mean ratings",
        meaning="level is the participant's rating; no response is right or wrong",
        choices=SCALES[levels],
        shows_label=True,
        texts={
            language: {key: text for key, text in texts.items() if key not in others}
            for language, texts in TASK_TEXTS["rating"].items()
        },
        refuse=refuse,
        rescale=make_task,
    )


TASK = make_task(USUAL)
