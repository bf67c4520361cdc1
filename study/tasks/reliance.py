"""Respond to the image alone, then see the AI's label with its explanation and respond again; the truth is sealed.

Source: Schemmer, Kuehl, Benz, Bartos & Satzger (2023), "Appropriate reliance on AI advice", IUI, arXiv:2302.02187; with
heatmaps and examples, Casolin et al. (2024). Both responses are scored by the true class; the final one is the outcome.
"""

from __future__ import annotations

from scipy.special import expit, logit

from study.bundle import Trial
from study.locales import TASK_TEXTS
from study.tasks.task import FirstStep, Option, Task
from study.tasks.theory import SWITCH, ShownExplanations, Theory


def find_right(trial: Trial) -> Option:
    """Return the option that is the true class."""
    return "a" if trial.options[0] == trial.truth else "b"


def find_sealed(trial: Trial) -> str:
    """Return the true class."""
    return trial.truth


def compute_p_first(theory: Theory, trial: Trial, deviation: float) -> float:
    """Return the probability of a right response to the image alone."""
    p_ai = theory.p_ai(trial, ShownExplanations(), deviation)
    return p_ai if trial.truth == trial.target else 1.0 - p_ai


def compute_p_final(
    theory: Theory, trial: Trial, shown: ShownExplanations, deviation: float, switch: float, was_right: bool
) -> float:
    """Return the probability of a right final response, after a first one that was right or not.

    Where the AI agrees, participants keep their response. Where it contradicts them, the log-odds of following it are
    logit(switch), plus what the explanation adds to the log-odds of accepting the AI's label.
    """
    ai_right = trial.truth == trial.target
    if was_right == ai_right:
        return float(was_right)
    told, untold = (theory.p_accept(trial, one, deviation) for one in (shown, ShownExplanations()))
    follows = float(expit(logit(switch) + logit(told) - logit(untold)))
    return follows if ai_right else 1.0 - follows


def compute_p_right(theory: Theory, trial: Trial, shown: ShownExplanations, deviation: float) -> float:
    """Return the probability of a right final response, whatever the first one was."""
    first = compute_p_first(theory, trial, deviation)
    kept, changed = (compute_p_final(theory, trial, shown, deviation, SWITCH, right) for right in (True, False))
    return first * kept + (1.0 - first) * changed


TASK = Task(
    "reliance",
    find_right,
    find_sealed,
    compute_p_right,
    aim="Do explanations help participants rely on the AI when it is right, and only then?",
    act="give the correct final response",
    outcome="Correct final responses",
    meaning="the participant's final response is the true class: choice equals truth",
    shows_label=True,
    first_step=FirstStep(compute_p_first, compute_p_final),
    texts=TASK_TEXTS["reliance"],
)
