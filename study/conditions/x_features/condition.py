"""The image and, above each name, the parts of the image that speak most for or against this name, and how strongly.

They are where the x-features of the name are strongest: a few features of the network that together explain how high it
rates the name. Both names' parts are chosen by the same rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from study.bundle import ConditionAssets, significant
from study.conditions.own_images import explain_names

if TYPE_CHECKING:
    from study.conditions.making import Studio, TrialMaterial
    from study.conditions.x_features.fit import ClassFeatures, ReadPool

NAME = "x_features"


def make(studio: Studio, material: TrialMaterial) -> ConditionAssets:
    """Draw, for each option, the parts where its x-features are strongest.

    A simulated learner reads exactly what the parts shown add to the log-odds of an image of other classes: the gain.
    """
    from core.layers.layers import maps_of
    from study.conditions.x_features.cards import choose_parts, draw_cards

    read = _read_pool(studio)
    maps = maps_of(studio.classifier, material.inputs, read.layer)[0]
    image = material.view.draw(studio.size)
    examples: dict[str, tuple[str, ...]] = {}
    adds = []
    for k, option in zip(material.classes, material.options, strict=True):
        shown = choose_parts(_fit_class(studio, read, k, option), maps)
        examples[option] = tuple(map(studio.write, draw_cards(image, shown, studio.texts, studio.size)))
        adds.append(sum(one.adds for one in shown))
    return ConditionAssets(examples=examples, gain=significant(adds[0] - adds[1]))


def _read_pool(studio: Studio) -> ReadPool:
    from study.conditions.x_features.fit import read_pool

    return studio.once(NAME, lambda: read_pool(studio.classifier, studio.pool))


def _fit_class(studio: Studio, read: ReadPool, k: int, name: str) -> ClassFeatures:
    import torch

    from study.conditions.x_features.fit import fit_class

    generator = torch.Generator().manual_seed(studio.seed_of(NAME, str(k)))
    return studio.once(f"{NAME} of {k}", lambda: fit_class(read, k, name, generator))


CONDITION = explain_names(NAME, make)
