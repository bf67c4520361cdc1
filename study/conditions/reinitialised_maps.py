"""Placebo: the image next to the heatmap of the same network with random weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from study.bundle import ConditionAssets, Trial
from study.conditions.condition import Condition, ShownAssets, no_examples

if TYPE_CHECKING:
    from study.conditions.making import Studio, TrialMaterial


def arrange_assets(trial: Trial) -> ShownAssets:
    """Return the assets in their places."""
    return ShownAssets(
        trial.assets.target, trial.assets.by_condition["reinitialised_maps"].target_map, no_examples(trial)
    )


def make(studio: Studio, material: TrialMaterial) -> ConditionAssets:
    """Explain the target by a copy of the network whose weights are drawn again."""
    import torch

    from core.faithfulness.randomisation import reinitialise_classifier
    from core.network.classifier import Classifier

    def untrained() -> Classifier:
        generator = torch.Generator().manual_seed(studio.seed_of("reinitialised"))
        return reinitialise_classifier(studio.classifier, generator)

    explanation = studio.explain_with(studio.once("reinitialised", untrained), material)
    drawn = studio.write(studio.overlay(material.view, studio.drawn_values(explanation)))
    return ConditionAssets(target_map=drawn, relevance=studio.relevance(material, explanation.evidence[0].numpy()))


CONDITION = Condition(
    "reinitialised_maps", shows_saliency=True, shows_examples=False, shown=arrange_assets, make=make, placebo=True
)
