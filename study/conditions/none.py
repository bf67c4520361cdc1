"""Control: the picture alone."""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition, Shown, no_examples


def shown(trial: Trial) -> Shown:
    """The assets in their places."""
    return Shown(trial.assets.target, None, no_examples(trial))


CONDITION = Condition("none", shows_saliency=False, shows_examples=False, shown=shown)
