"""Spread of a network's predictions for an image under noise."""

from __future__ import annotations

from inspect import signature

from core.parameters import parse_parameters
from core.uncertainty import SAMPLERS, UNCERTAINTY_MEASURES
from study.building.candidates import Candidate
from study.building.measures.ground import CandidateMeasure, Ground, MeasuredValue
from study.plan.strata import Strata


def draws_from_prior(settings: Strata) -> bool:
    """Tell whether what is asked depends on the prior of the study."""
    return settings.sampler is not None and "prior" in signature(SAMPLERS[settings.sampler]).parameters


def under_noise(ground: Ground) -> CandidateMeasure:
    """Return a measure of `core.uncertainty`, by the sampler, its parameters and passes that the strata name."""
    settings = ground.settings
    sampler, measure = SAMPLERS[str(settings.sampler)], UNCERTAINTY_MEASURES[settings.measure]
    given = parse_parameters(sampler, settings.parameters) | {"passes": settings.passes}
    if draws_from_prior(settings):
        given["prior"] = ground.prior

    def measure_candidate(candidate: Candidate) -> MeasuredValue:
        draws = ground.generator("doubt", candidate)
        predictions = sampler(ground.classifier, ground.inputs(candidate), generator=draws, **given)
        estimate = measure(predictions.softmax(-1))
        return MeasuredValue(float(estimate.value), float(estimate.error))

    return measure_candidate
