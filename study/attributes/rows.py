"""A trial about attributes as the models read it: a question about each of them, used or not used by the AI."""

from __future__ import annotations

from study.attributes.sets import LETTERS
from study.bundle import Trial, TrialType

CHOICES = ("selected", "unselected")
"""What participants may do with an attribute."""


def ask_each(trial: Trial) -> tuple[Trial, ...]:
    """Return the questions of a trial, one for each attribute; a trial about anything else is one question.

    Each has the attribute as its category, ``used`` or ``unused`` as its type, and an id of its own.
    """
    if trial.attributes is None:
        return (trial,)
    return tuple(
        trial.model_copy(
            update={
                "id": f"{trial.id}-{letter}",
                "trial_type": find_type(used),
                "target": name,
                "alternative": "",
                "options": CHOICES,
            }
        )
        for letter, name, used in zip(LETTERS, trial.attributes.names, trial.attributes.used, strict=False)
    )


def find_type(used: bool) -> TrialType:
    """Find the type of the question about an attribute."""
    return "used" if used else "unused"
