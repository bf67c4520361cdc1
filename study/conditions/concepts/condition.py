"""The image, and for each option a bar chart of the concepts that raise or lower its probability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from study.bundle import ConditionAssets, significant
from study.conditions.own_images import explain_names

if TYPE_CHECKING:
    from study.conditions.making import Studio, TrialMaterial


def make(studio: Studio, material: TrialMaterial) -> ConditionAssets:
    """Draw, for each option, what raises and lowers its probability, measured by intervention over the pool."""
    from study.conditions.concepts.charts import ConceptEffects, chart, concept_effects

    def measure_effects() -> ConceptEffects:
        return concept_effects(studio.classifier, studio.pool, studio.seed_of("concepts"))

    effects = studio.once("concepts", measure_effects)
    drawn = [studio.write(chart(effects.strongest(k), studio.size)) for k in material.classes]
    own = {name: factor.known for name, factor in material.images.factors.items()}
    seen = {name: values[material.index] for name, values in own.items() if values is not None}
    return ConditionAssets(
        examples={option: (one,) for option, one in zip(material.options, drawn, strict=True)},
        gain=significant(effects.gain(seen, *material.classes)),
    )


CONDITION = explain_names("concepts", make)
