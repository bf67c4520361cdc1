"""Placebo: the picture beside a map that has the true one's colours in places drawn at random."""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition, Shown, no_examples


def shown(trial: Trial) -> Shown:
    """The assets in their places."""
    return Shown(trial.assets.target, trial.assets.placebos["random_maps"].target_map, no_examples(trial))


CONDITION = Condition("random_maps", shows_saliency=True, shows_examples=False, shown=shown, placebo=True)
