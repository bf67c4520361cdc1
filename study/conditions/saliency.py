"""The picture, and beside it the picture under its map."""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition, Shown, no_examples


def shown(trial: Trial) -> Shown:
    """The assets in their places."""
    return Shown(trial.assets.target, trial.assets.target_map, no_examples(trial))


CONDITION = Condition("saliency", shows_saliency=True, shows_examples=False, shown=shown)
