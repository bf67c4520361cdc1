"""The picture with its map, and examples each under its own map."""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition, Shown, mapped_examples


def shown(trial: Trial) -> Shown:
    """The assets in their places."""
    return Shown(trial.assets.target, trial.assets.target_map, mapped_examples(trial))


CONDITION = Condition("both", shows_saliency=True, shows_examples=True, shown=shown)
