"""The measures over which a study may spread its targets: one number for each image, by `[trials.strata]`.

`IMAGE_MEASURES` names every one (one function, one line): ``measure(ground, **parameters)`` gives a function from a
candidate to its `Number`; the parameters are those of the study file. For a measure of uncertainty, they are those of
the sampler that draws its predictions.
"""

from core.registry import Registry
from core.uncertainty import UNCERTAINTY_MEASURES as OF_UNCERTAINTY

UNDER_NOISE = tuple(OF_UNCERTAINTY)
"""The measures of uncertainty."""

IMAGE_MEASURES = Registry(
    "image measure",
    {
        **dict.fromkeys(UNDER_NOISE, "study.building.measures.noise:under_noise"),
        "margin": "study.building.measures.margin:margin",
        "concept_sensitivity": "inquiry.measures.concepts:concept_sensitivity",
        "concept_effect": "inquiry.measures.concepts:concept_effect",
        "assertion": "inquiry.measures.rules:assertion",
        "label_error": "inquiry.measures.labels:label_error",
    },
)
