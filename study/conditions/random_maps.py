"""Placebo: the image next to a heatmap with the colours of the real one in random places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from study.bundle import ConditionAssets, Trial
from study.conditions.condition import Condition, ShownAssets, no_examples

if TYPE_CHECKING:
    from study.conditions.making import Studio, TrialMaterial


def arrange_assets(trial: Trial) -> ShownAssets:
    """Return the assets in their places."""
    return ShownAssets(trial.assets.target, trial.assets.by_condition["random_maps"].target_map, no_examples(trial))


def make(studio: Studio, material: TrialMaterial) -> ConditionAssets:
    """Put the values of the true heatmap in places drawn at random."""
    import torch

    from core.teaching.masks import elsewhere

    values = studio.drawn_values(material.explanation)
    generator = torch.Generator().manual_seed(studio.seed_of("random_maps", material.id))
    places = elsewhere(torch.from_numpy(values), generator).numpy()
    evidence = material.explanation.evidence[0].numpy().flat[places]
    drawn = studio.write(studio.overlay(material.view, values.flat[places]))
    return ConditionAssets(target_map=drawn, relevance=studio.relevance(material, evidence))


CONDITION = Condition(
    "random_maps", shows_saliency=True, shows_examples=False, shown=arrange_assets, make=make, placebo=True
)
