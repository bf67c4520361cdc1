"""Rate how confident you are that the AI's label, which is shown, is right or wrong. The true class is sealed.

Source: the agreement task of HIVE (Kim, Meister, Ramaswamy, Fong & Russakovsky, 2022, ECCV, arXiv:2112.03184). A
response is correct where the half of the scale that it is on agrees with the true class.
"""

from __future__ import annotations

from dataclasses import replace

from study.bundle import Trial
from study.locales import TASK_TEXTS
from study.tasks.accept_reject import TASK as ACCEPT_REJECT
from study.tasks.task import Option


def find_right(trial: Trial) -> Option:
    """Return the levels for right where the AI's label is the true class; else those for wrong; the mildest first."""
    return "cd" if trial.target == trial.truth else "ba"


TASK = replace(
    ACCEPT_REJECT,
    name="agreement",
    find_right=find_right,
    act="tell correctly whether the AI is right",
    outcome="Responses on the correct side of the scale",
    meaning="the participant's side of the scale agrees with the true class: right where category equals truth",
    choices=("fairly_wrong", "somewhat_wrong", "somewhat_right", "fairly_right"),
    texts={
        language: {
            **{key: text for key, text in texts.items() if key not in ("choice_right", "choice_wrong")},
            **TASK_TEXTS["agreement"][language],
        }
        for language, texts in ACCEPT_REJECT.texts.items()
    },
)
