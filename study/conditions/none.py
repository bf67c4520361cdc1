"""Control: the image alone."""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition, ShownAssets, no_examples


def arrange_assets(trial: Trial) -> ShownAssets:
    """Return the assets in their places."""
    return ShownAssets(trial.assets.target, None, no_examples(trial))


CONDITION = Condition("none", shows_saliency=False, shows_examples=False, shown=arrange_assets)
