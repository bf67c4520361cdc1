"""Probability that an image's label is wrong."""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.types import silent
from inquiry.debugging.debugging import read_out_of_fold
from study.building.candidates import Candidate
from study.building.measures.ground import CandidateMeasure, Ground, MeasuredValue
from study.network.predictions import predict


def label_error(ground: Ground, *, judge: Literal["predictions", "features"] = "predictions") -> CandidateMeasure:
    """Measure how likely the label is wrong: the likeliest other class's probability less the label's own, -1 to 1.

    The margin of `core.debugging.labels` with its sign turned: by the network's predictions, or by linear probes of the
    features that have not seen the label, of the whole set that the image is from.
    """

    @cache
    def read(role: str) -> NDArray[np.float64]:
        predictions = predict(ground.classifier, ground.sets[role], ground.cache, silent, features=True)
        return read_out_of_fold(predictions, len(ground.classifier.categories), silent)

    def measure_candidate(candidate: Candidate) -> MeasuredValue:
        if judge == "features":
            p = read(candidate.role)[candidate.index]
        else:
            p = ground.classifier.probabilities(ground.inputs(candidate))[0].double().numpy()
        return MeasuredValue(float(np.delete(p, candidate.truth).max() - p[candidate.truth]))

    return measure_candidate
