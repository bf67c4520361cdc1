"""The image and, above each name, its parts that are most like those by which the AI knows this name, next to these.

Only for networks that predict from prototypes. Both options' prototypes are chosen by the same rule, and no similarity
is given as a number: participants find out which name the AI chose by comparing the parts themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from study.bundle import ConditionAssets, significant
from study.conditions.own_images import explain_names

if TYPE_CHECKING:
    from study.conditions.making import Studio, TrialMaterial

NAME = "prototypes"


def make(studio: Studio, material: TrialMaterial) -> ConditionAssets:
    """Draw, for each option, the prototypes that add most to its logit, with the parts of the image they match.

    A simulated learner reads the similarities that are shown exactly, so their part of the log-odds is the gain.
    """
    from study.conditions.prototypes.cards import describe_input, draw_matches

    image = material.view.draw(studio.size)
    examples: dict[str, tuple[str, ...]] = {}
    adds = []
    for k, option in zip(material.classes, material.options, strict=True):
        matches = describe_input(studio.classifier, material.inputs[0], k)
        drawn = draw_matches(studio.classifier, image, matches, studio.size)
        examples[option] = tuple(map(studio.write, drawn))
        adds.append(sum(match.contribution for match in matches))
    return ConditionAssets(examples=examples, gain=significant(adds[0] - adds[1]))


CONDITION = explain_names(NAME, make)
