"""The image and, with each name, its heatmap for that name: which of them explains the AI's choice is not said.

The explanations of the distinction task of HIVE (Kim et al. 2022, arXiv:2112.03184). Each heatmap is drawn on its own
scale, as is that of the prediction alone: its strength does not tell which class the AI chose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import ForetellError
from study.bundle import ConditionAssets, significant
from study.conditions.own_images import explain_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from study.conditions.making import Studio, TrialMaterial

NAME = "class_maps"


def make(studio: Studio, material: TrialMaterial) -> ConditionAssets:
    """Explain the target for each option by the study's method.

    A simulated reader compares the heatmap of their own label, the true class, with the others: the relevance is one
    half where no other heatmap lies more on the object, more where all lie less on it, and at most 1.

    Raises
    ------
    ForetellError
        All heatmaps of a trial are the same.
    """
    explained = [material.explanation, *(studio.explain_class(material, k) for k in material.classes[1:])]
    values = [studio.drawn_values(one) for one in explained]
    drawn = [studio.write(studio.overlay(material.view, one)) for one in values]
    if len(set(drawn)) == 1:
        raise ForetellError(
            f"Trial {material.id} has the same heatmap for every class. Leave the condition {NAME!r} out, or set a "
            "method whose heatmaps depend on the class."
        )
    on_object = [studio.relevance(material, one.evidence[0].numpy()) for one in explained]
    own = material.classes.index(material.truth)
    return ConditionAssets(
        examples={option: (one,) for option, one in zip(material.options, drawn, strict=True)},
        relevance=compare_relevance(on_object, own),
    )


def compare_relevance(on_object: Sequence[float], own: int) -> float:
    """Compare the relevance of one heatmap, at index ``own``, with the largest of the others, in [0, 1]."""
    others = max(value for i, value in enumerate(on_object) if i != own)
    return significant(0.5 + (on_object[own] - others) / 2)


CONDITION = explain_names(NAME, make, explains_each_option=True)
