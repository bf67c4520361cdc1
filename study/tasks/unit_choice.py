"""Which of two images activates a unit of the network more? References are the images that activate it least and most.

Sources: Borowski et al. (2021, ICLR, arXiv:2010.12606); Zimmermann, Klein & Brendel (2023, NeurIPS, arXiv:2307.05471).
"""

from __future__ import annotations

from scipy.special import expit, logit

from study.bundle import Trial
from study.conditions.condition import Condition
from study.facts import TeachingFacts
from study.locales import TASK_TEXTS
from study.tasks.task import Option, Task
from study.tasks.theory import ShownExplanations, Theory

HALF = 0.5
EASE = 0.5
"""What simulated participants learn from references: log-odds per standard deviation between the activations."""
KNOWN = ("none", "examples")
"""The conditions of units: without and with the references."""


def find_right(trial: Trial) -> Option:
    """Return the side of the image that activates the unit more."""
    return trial.ai_choice


def find_sealed(trial: Trial) -> str:
    """Return that side."""
    return trial.target


def compute_p_right(theory: Theory, trial: Trial, shown: ShownExplanations, deviation: float) -> float:
    """Return the probability of the right image: one half, but for what references teach.

    Nobody has a belief of their own about a unit. Those that learn from examples learn, in log-odds, `EASE` times the
    difference of the two activations.
    """
    gain = EASE * float(trial.unit.gap) if trial.unit is not None else 0.0
    taught = trial.model_copy(update={"truth": trial.target, "teaching": TeachingFacts(gain=gain)})
    informed, alone = (theory.p_ai(taught, seen, deviation) for seen in (shown, ShownExplanations()))
    learned = float(logit(informed) - logit(alone))
    return float(expit(learned + deviation)) if learned else HALF


def refuse(condition: Condition) -> str:
    """Refuse the conditions that explain a prediction."""
    return "" if condition.name in KNOWN else "it explains a prediction, and participants are asked about a unit"


TASK = Task(
    "unit_choice",
    find_right,
    find_sealed,
    compute_p_right,
    aim="Do reference images help participants understand the units of the AI?",
    act="choose the image that activates the unit more",
    outcome="Correct choices between two images",
    meaning="the participant chose the image that activates the unit more",
    choices=("left", "right"),
    of_units="images",
    texts=TASK_TEXTS["unit_choice"],
    refuse=refuse,
)
