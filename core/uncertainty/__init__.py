"""Uncertainty of a network: samples of its predictions, and measures of how far they differ.

`SAMPLERS` names every way to sample: ``sampler(classifier, images, *, passes, generator, progress, **parameters)``
gives logits (B, T, K), one set for each of T draws of the weights. `UNCERTAINTY_MEASURES` names what is computed from
them: ``measure(probabilities)`` of (B, T, K) gives an `Estimate` for each image. Each is a function and a line.
"""

from core.registry import Registry

SAMPLERS = Registry(
    "sampler",
    {
        "mc_dropout": "core.uncertainty.samplers:mc_dropout",
        "inserted_dropout": "core.uncertainty.samplers:inserted_dropout",
        "multiplicative_noise": "core.uncertainty.samplers:multiplicative_noise",
        "drop_connect": "core.uncertainty.samplers:drop_connect",
        "additive_noise": "core.uncertainty.samplers:additive_noise",
        "laplace": "core.uncertainty.last_layer:laplace",
    },
)

UNCERTAINTY_MEASURES = Registry(
    "measure of uncertainty",
    {
        "least_confidence": "core.uncertainty.measures:least_confidence",
        "entropy": "core.uncertainty.measures:entropy",
        "mutual_information": "core.uncertainty.measures:mutual_information",
        "variation_ratio": "core.uncertainty.measures:variation_ratio",
    },
)
