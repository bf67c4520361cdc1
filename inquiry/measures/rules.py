"""Violation of a rule of the researcher's own by the prediction for an image."""

from __future__ import annotations

import numpy as np

from core.errors import ForetellError
from core.files import find_file
from core.registry import Registry
from inquiry.assertions.assertions import make_prediction
from inquiry.assertions.rules import LIMIT_S, RuleProcess
from study.building.candidates import Candidate
from study.building.measures.ground import CandidateMeasure, Ground, MeasuredValue


def assertion(ground: Ground, *, file: str, rule: str, limit: float = LIMIT_S) -> CandidateMeasure:
    """Measure how far the function ``rule`` of a ``file`` next to the study file is broken, 0 where it holds.

    The file is that of the command ``assertions`` and is executed; ``limit`` is in seconds for an image.

    Raises
    ------
    ForetellError
        No such file or function, one about a history, one that fails, or one that says nothing of an image.
    """
    path = find_file(ground.base, file, ground.limits, runs=True)
    rules = RuleProcess(path)
    if rule not in rules.says:
        raise ForetellError(f"{path}: {Registry('rule', rules.says).unknown(rule)}")

    if rule in rules.windows:
        raise ForetellError(
            f"{path.name}:{rule} is about a history, and a target is one image: choose a rule of (image, prediction)."
        )

    def measure_candidate(candidate: Candidate) -> MeasuredValue:
        images = ground.sets[candidate.role]
        image, label = images.open(candidate.index), images.categories[images.labels[candidate.index]]
        given = ground.classifier.probabilities(ground.inputs(candidate))[0].numpy()
        prediction, of = make_prediction(ground.classifier, given, label), images.ids[candidate.index]
        value = rules.severity(rule, image, prediction, of, limit)
        if np.isnan(value):
            raise ForetellError(
                f"{path.name}:{rule} returns None for {of}, which then belongs to no stratum: let it return True, "
                "False or a number for every image that may be a target."
            )
        return MeasuredValue(value)

    return measure_candidate
