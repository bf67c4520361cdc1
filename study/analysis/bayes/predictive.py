"""Responses that draws of the parameters predict, with new participants, categories and images."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, ndtr

from core.types import Progress, silent
from study.analysis.bayes.design import Design
from study.analysis.bayes.sampler import ParameterDraws
from study.analysis.models.laplace import root
from study.analysis.models.records import Floats


def draw_responses(
    design: Design, draws: ParameterDraws, count: int, rng: np.random.Generator, progress: Progress = silent
) -> Floats:
    """Return (count, n) numbers of correct responses of each row, each from parameters of one draw.

    Each level of a grouping has new random effects, as in `study.analysis.models.draws`: a property of the responses
    that the model lacks is not passed on by the effects of these participants.
    """
    coefficients, covariances = draws.flatten()
    chosen = rng.permutation(np.resize(rng.permutation(len(coefficients)), count))
    made, said = np.empty((count, len(design.columns))), "Drawing responses from the Bayesian model"
    for number, k in enumerate(chosen):
        progress(number, count, said)
        eta = design.columns @ coefficients[k] + design.offset
        for block, covariance in zip(design.blocks, covariances, strict=True):
            effects = rng.standard_normal((len(block.levels), block.width)) @ root(covariance[k]).T
            eta = eta + np.sum(block.values * effects[block.codes], axis=1)
        chance = ndtr(eta) if design.model.link == "probit" else expit(eta)
        made[number] = rng.binomial(design.responses.astype(np.int64), chance)
    progress(count, count, said)
    return made
