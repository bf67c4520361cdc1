"""The picture, and examples of what the AI calls each option."""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition, Shown, plain_examples


def shown(trial: Trial) -> Shown:
    """The assets in their places."""
    return Shown(trial.assets.target, None, plain_examples(trial))


CONDITION = Condition("examples", shows_saliency=False, shows_examples=True, shown=shown)
