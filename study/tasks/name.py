"""What does a unit of the network respond to? A short text in the participant's own words, coded by two raters.

Source: Colin et al. (2026). All participants see the images that activate the unit most; with the condition
``examples`` also those that activate it least, as in Borowski et al. (2021, ICLR, arXiv:2010.12606).
"""

from __future__ import annotations

from study.bundle import Trial
from study.locales import TASK_TEXTS
from study.tasks.task import Option, Task
from study.tasks.unit_choice import compute_p_right, refuse


def find_right(trial: Trial) -> Option:  # noqa: ARG001
    """Return a: what is counted of a text that both raters coded as a match."""
    return "a"


def find_sealed(trial: Trial) -> str:
    """Return nothing: nobody knows the right name of a unit, so there is no feedback."""
    del trial
    return ""


TASK = Task(
    "name",
    find_right,
    find_sealed,
    compute_p_right,
    aim="Do images that activate a unit least help participants say what it responds to?",
    act="say what the unit responds to",
    outcome="Texts that match the unit",
    meaning="both raters coded the participant's text as a match",
    choices=("correct", "incorrect"),
    of_units="names",
    is_written=True,
    texts=TASK_TEXTS["name"],
    refuse=refuse,
)
