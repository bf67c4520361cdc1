"""The image with its heatmap, and examples, each with its own heatmap."""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition, ShownAssets, list_mapped_examples


def arrange_assets(trial: Trial) -> ShownAssets:
    """Return the assets in their places."""
    return ShownAssets(trial.assets.target, trial.assets.target_map, list_mapped_examples(trial))


CONDITION = Condition("both", shows_saliency=True, shows_examples=True, shown=arrange_assets)
