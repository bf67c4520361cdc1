"""Placebo: the picture, and beneath each option examples of something else."""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition, Shown


def shown(trial: Trial) -> Shown:
    """The assets in their places."""
    return Shown(trial.assets.target, None, dict(trial.assets.placebos["wrong_examples"].examples))


CONDITION = Condition("wrong_examples", shows_saliency=False, shows_examples=True, shown=shown, placebo=True)
