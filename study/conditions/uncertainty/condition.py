"""The image next to a gauge of the AI's confidence in its prediction, which is not named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from study.bundle import ConditionAssets, Trial, significant
from study.conditions.condition import Condition, ShownAssets, no_examples

if TYPE_CHECKING:
    from study.conditions.making import Studio, TrialMaterial


def arrange_assets(trial: Trial) -> ShownAssets:
    """Return the assets in their places."""
    return ShownAssets(trial.assets.target, trial.assets.by_condition["uncertainty"].target_map, no_examples(trial))


def make(studio: Studio, material: TrialMaterial) -> ConditionAssets:
    """Draw the gauge.

    A simulated reader takes a confident AI to see what they see, as if its heatmap lay on the object.
    """
    from study.conditions.uncertainty.gauge import gauge

    confidence = significant(material.probability)
    return ConditionAssets(target_map=studio.write(gauge(confidence, studio.size)), relevance=confidence)


CONDITION = Condition(
    "uncertainty",
    shows_saliency=True,
    shows_examples=False,
    shown=arrange_assets,
    make=make,
    other=True,
    words={"map_legend": "gauge_legend", "example_map": "example_gauge"},
)
