"""The image, and examples of images that the AI predicts as each option."""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition, ShownAssets, plain_examples


def arrange_assets(trial: Trial) -> ShownAssets:
    """Return the assets in their places."""
    return ShownAssets(trial.assets.target, None, plain_examples(trial))


CONDITION = Condition("examples", shows_saliency=False, shows_examples=True, shown=arrange_assets)
