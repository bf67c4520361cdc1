"""Which attributes of images does the AI use? Its images are in columns by its confidence, with or without heatmaps.

Source: Sixt, Schuessler, Popescu, Weiß & Landgraf (2022, ICLR, arXiv:2204.11642).
"""

from __future__ import annotations

from scipy.special import expit, logit

from study.bundle import Trial
from study.conditions.condition import Condition
from study.locales import TASK_TEXTS
from study.tasks.task import Option, Task
from study.tasks.theory import ShownExplanations, Theory

SEEN = 1.0
"""What simulated participants see in a grid: log-odds of a correct judgement of an attribute."""
KNOWN = ("none", "saliency")
"""The conditions of a grid: its images alone, and next to them the same with heatmaps."""
OFF_OBJECT = 0.4
"""Share of the evidence on the object in a grid's heatmaps, for simulated readers: they learn as much again."""
CERTAIN = float(logit(0.9))
"""Log-odds of those who always attend, and see the whole of `SEEN`."""


def find_right(trial: Trial) -> Option:  # noqa: ARG001
    """Return a: what is stored of a set that has all used attributes and no other."""
    return "a"


def find_sealed(trial: Trial) -> str:
    """Return the attributes that the AI uses, which participants are never told."""
    facts = trial.attributes
    return "" if facts is None else ", ".join(name for name, used in zip(facts.names, facts.used, strict=True) if used)


def compute_p_right(theory: Theory, trial: Trial, shown: ShownExplanations, deviation: float) -> float:
    """Return the probability of a correct judgement of one attribute: of a hit, or of a correct rejection.

    The grid says `SEEN` to those who attend, nothing to guessers, and half of it to the inattentive; heatmaps say
    something to those that read them. A participant's own deviation is their tendency to choose attributes.
    """
    asked = trial.model_copy(update={"truth": "", "relevance": OFF_OBJECT})
    informed, alone = (float(logit(theory.p_ai(asked, one))) for one in (shown, ShownExplanations()))
    attends = abs(alone) / CERTAIN
    towards = deviation if trial.trial_type == "used" else -deviation
    return float(expit(attends * (SEEN + towards) + informed - alone))


def refuse(condition: Condition) -> str:
    """Refuse the conditions that explain the prediction of one image."""
    return "" if condition.name in KNOWN else "it explains the prediction of one image, and participants see a grid"


TASK = Task(
    "discover",
    find_right,
    find_sealed,
    compute_p_right,
    aim="Do explanations help participants discover which attributes the AI uses?",
    act="judge correctly whether the AI uses an attribute",
    outcome="Correct judgements of attributes",
    meaning="the participant chose the attribute if the AI uses it, and did not choose it if the AI does not",
    choices=("exact", "inexact"),
    of_attributes=True,
    texts=TASK_TEXTS["discover"],
    refuse=refuse,
)
