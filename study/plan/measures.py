"""What a study may spread its targets over: one number for each image, by `[trials.strata]` of the study file.

`IMAGE_MEASURES` names every one (one function, one line): ``measure(ground, **parameters)`` gives a function from a
candidate to its `Number`; the parameters are those of the study file. A measure of uncertainty asks under noise, and
they are the sampler's.
"""

from core.registry import Registry
from core.uncertainty import UNCERTAINTY_MEASURES as OF_UNCERTAINTY

UNDER_NOISE = tuple(OF_UNCERTAINTY)
"""The measures of uncertainty."""

IMAGE_MEASURES = Registry(
    "measure of a picture",
    {
        **dict.fromkeys(UNDER_NOISE, "study.building.measures.noise:under_noise"),
        "margin": "study.building.measures.margin:margin",
        "concept_sensitivity": "study.building.measures.concepts:concept_sensitivity",
        "concept_effect": "study.building.measures.concepts:concept_effect",
        "assertion": "study.building.measures.rules:assertion",
        "label_doubt": "study.building.measures.labels:label_doubt",
    },
)
