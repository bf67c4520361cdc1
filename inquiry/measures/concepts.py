"""Dependence of an image's prediction on a human concept."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from core.attribution.places.activations import refuse_unknown
from core.attribution.places.place import select_layer
from core.concepts.sensitivity import Directions, derivatives, directions_of
from core.concepts.tcav import KNOWN
from core.concepts.vector import LEAST
from core.errors import ForetellError
from core.files import find_file
from data.types import ImageSet
from inquiry.concepts.conceptsets import Concept, draw_concept_inputs, parse_concepts
from study.building.candidates import Candidate
from study.building.measures.ground import CandidateMeasure, Ground, MeasuredValue


def concept_sensitivity(
    ground: Ground, *, concept: str, random: str = "", layer: str = "", images: int = 30, runs: int = 10
) -> CandidateMeasure:
    """Measure d logit of the prediction / d unit vector of a concept at a layer, above 0 where the concept raises it.

    Kim et al. 2018 (arXiv:1711.11279), equation 1. ``concept`` is ``FACTOR=VALUE`` of a pool that can be intervened on,
    or a folder next to the study file, against the images of the folder ``random``. ``runs`` vectors are learned from
    ``images`` of the concept, each against other ones without it; the value is their mean, the error that of a mean.
    ``layer`` is the last that keeps places apart where none is named.

    Raises
    ------
    ForetellError
        No such concept or layer, too few images, or a layer that hardly knows the concept.
    """
    if images < LEAST or runs < 2:
        raise ForetellError(
            f"trials.strata: images = {images}, runs = {runs}: a concept needs at least {LEAST} images and at "
            "least 2 runs."
        )
    known, pool = _concept(ground, ground.sets["pool"], concept, random), ground.sets["pool"]
    where = layer or select_layer(ground.classifier, "")
    with ground.classifier.exclusive() as module:
        refuse_unknown(ground.classifier, module, where)

    @cache
    def learn_directions() -> Directions:
        rng = np.random.default_rng(ground.seed)
        shown, others = draw_concept_inputs(ground.classifier, known, pool, np.arange(len(pool)), images, rng)
        draws = torch.Generator().manual_seed(ground.seed)
        vectors = directions_of(ground.classifier, where, shown, others, runs=runs, generator=draws)
        if vectors.accuracy < KNOWN:
            raise ForetellError(
                f"trials.strata: layer {where} barely represents {known.name}: vectors classify {vectors.accuracy:.0%} "
                "of held-out images correctly. Name another layer, more images or another concept in the parameters."
            )
        return vectors

    def measure_candidate(candidate: Candidate) -> MeasuredValue:
        slopes = derivatives(ground.classifier, ground.inputs(candidate), [candidate.target], learn_directions())[0]
        return MeasuredValue(float(slopes.mean()), float(slopes.std() / runs**0.5))

    return measure_candidate


def concept_effect(ground: Ground, *, concept: str) -> CandidateMeasure:
    """Measure what do(FACTOR=VALUE) does to the prediction's probability, against the mean of the other values.

    Goyal et al. 2019 (arXiv:1907.07165), definition 1, of one image: above 0 where the concept favours the prediction.

    Raises
    ------
    ForetellError
        A set that targets come from cannot be intervened on so.
    """
    for images in ground.targets():
        if not images.factors:
            raise ground.unfit(
                f"changes something in the images, and those of {images.name} cannot be changed",
                "Give sets that are drawn by a generator",
            )
        known = _concept(ground, images, concept, "")

    def measure_candidate(candidate: Candidate) -> MeasuredValue:
        factor = ground.sets[candidate.role].factors[str(known.factor)]
        values = sorted(factor.values, key=lambda value: value != known.value)  # the concept's own first
        inputs = [ground.classifier.preprocess(factor.do(candidate.index, value)) for value in values]
        p = ground.classifier.probabilities(torch.stack(inputs))[:, candidate.target].double()
        return MeasuredValue(float(p[0] - p[1:].mean()))

    return measure_candidate


def _concept(ground: Ground, images: ImageSet, name: str, random: str) -> Concept:
    """Return the one concept of that name, folders relative to the study file."""
    if name.partition("=")[0] not in images.factors:
        name = str(find_file(ground.base, name, ground.limits))
    others = str(find_file(ground.base, random, ground.limits)) if random else None
    concepts = parse_concepts(images, [name], others)
    if len(concepts) != 1:
        values = ", ".join(one.name for one in concepts)
        raise ForetellError(f"trials.strata: the strata need one concept: name one of {values}.")
    return concepts[0]
