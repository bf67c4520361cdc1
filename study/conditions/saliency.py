"""The image, and next to it the image under its heatmap."""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition, ShownAssets, no_examples


def arrange_assets(trial: Trial) -> ShownAssets:
    """Return the assets in their places."""
    return ShownAssets(trial.assets.target, trial.assets.target_map, no_examples(trial))


CONDITION = Condition("saliency", shows_saliency=True, shows_examples=False, shown=arrange_assets)
