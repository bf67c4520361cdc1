"""Placebo: the picture beside the map of the same network with everything it learned forgotten."""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition, Shown, no_examples


def shown(trial: Trial) -> Shown:
    """The assets in their places."""
    return Shown(trial.assets.target, trial.assets.placebos["reinitialised_maps"].target_map, no_examples(trial))


CONDITION = Condition("reinitialised_maps", shows_saliency=True, shows_examples=False, shown=shown, placebo=True)
