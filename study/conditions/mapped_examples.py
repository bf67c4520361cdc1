"""The image alone, and the study's examples, each with its own heatmap."""

from __future__ import annotations

from study.bundle import Trial
from study.conditions.condition import Condition, ShownAssets, list_mapped_examples


def arrange_assets(trial: Trial) -> ShownAssets:
    """Return the assets in their places."""
    return ShownAssets(trial.assets.target, None, list_mapped_examples(trial))


CONDITION = Condition(
    "mapped_examples",
    shows_saliency=False,
    shows_examples=True,
    shown=arrange_assets,
    other=True,
    words={"example_examples": "example_mapped_examples"},
)
