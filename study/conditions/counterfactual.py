"""The image and, above each name, the most similar image that the AI calls so, with the parts that decide marked.

Exchanged with the image of the foil, the marked parts change the AI's prediction. They are marked in the same places of
all three images, and both options' images are chosen by the same rule, so nothing shown names the prediction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from study.bundle import ConditionAssets, Trial
from study.conditions.condition import Condition, ShownAssets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PIL import Image

    from study.conditions.making import Studio, TrialMaterial

NAME = "counterfactual"


def arrange_assets(trial: Trial) -> ShownAssets:
    """Return the assets in their places."""
    own = trial.assets.by_condition[NAME]
    return ShownAssets(trial.assets.target, own.target_map, dict(own.examples))


def make(studio: Studio, material: TrialMaterial) -> ConditionAssets:
    """Search the cells to exchange with the foil's most similar image, and mark them in all three images.

    The reader of heatmaps sees the marked cells as evidence; the learner from examples learns nothing from images that
    the teacher did not choose.
    """
    import numpy as np

    from core.drawing.rendering import mark_cells
    from core.robustness.counterfactual import find_counterfactual, number_cells

    chosen = material.own_examples[NAME].indices
    half = len(chosen) // 2
    shown = [_find_nearest(studio, material, side) for side in (chosen[:half], chosen[half:])]
    other = studio.classifier.preprocess(studio.pool.open(shown[1]))
    counterfactual = find_counterfactual(studio.classifier, material.inputs[0], other, places=0)

    def mark(image: Image.Image) -> str:
        return studio.write(mark_cells(image, counterfactual.cells, counterfactual.grid))

    evidence = np.isin(number_cells(counterfactual.grid, *other.shape[1:]).numpy(), counterfactual.cells).astype(
        np.float64
    )
    return ConditionAssets(
        target_map=mark(material.view.draw(studio.size)),
        examples={
            option: (mark(studio.draw_pool_image(i)),) for option, i in zip(material.options, shown, strict=True)
        },
        sources=tuple(studio.pool.ids[i] for i in shown),
        relevance=studio.relevance(material, evidence),
    )


def _find_nearest(studio: Studio, material: TrialMaterial, candidates: Sequence[int]) -> int:
    """Return the pool image whose features are nearest to the target's."""
    import torch

    from core.teaching.policies.nearest import compute_distances

    inputs = torch.stack([studio.classifier.preprocess(studio.pool.open(i)) for i in candidates])
    target = studio.classifier.features(material.inputs)[0]
    return candidates[int(compute_distances(studio.classifier.features(inputs), target).argmin())]


CONDITION = Condition(
    NAME,
    shows_saliency=True,
    shows_examples=True,
    shown=arrange_assets,
    make=make,
    other=True,
    policy="nearest",
    words={
        "map_legend": "counterfactual_legend",
        "examples_legend": "counterfactual_names_legend",
        "example_map": "example_counterfactual",
        "example_examples": "example_counterfactual_names",
        "example_both": "example_counterfactual_both",
    },
)
