"""Distance of an image from another prediction."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from core.errors import ForetellError
from core.robustness.boundary import directions_between, margins
from study.building.candidates import Candidate
from study.building.measures.ground import CandidateMeasure, Ground, MeasuredValue
from study.network.sources import class_of_labels

Span = Callable[[Candidate], Tensor | None]


def margin(
    ground: Ground, *, directions: Literal["anywhere", "discriminative", "random"] = "anywhere", count: int = 16
) -> CandidateMeasure:
    """Measure the least change that changes the prediction (`core.robustness.boundary.margins`); infinite without any.

    ``discriminative`` is within the span of ``count`` differences of pool images of the predicted class and the next
    likeliest that the pool has, ``random`` within that of as many random directions (one line for 1), drawn for each
    image. In the unit of the network's input.
    """
    if count < 1:
        raise ForetellError(f"trials.strata: count = {count} directions are too few: give 1 or more.")
    spans: dict[str, Callable[[Ground, int], Span]] = {"discriminative": _between_classes, "random": _random}
    span: Span = spans[directions](ground, count) if directions in spans else lambda _: None

    def measure_candidate(candidate: Candidate) -> MeasuredValue:
        return MeasuredValue(float(margins(ground.classifier, ground.inputs(candidate), span(candidate))[0]))

    return measure_candidate


def _random(ground: Ground, count: int) -> Span:
    def span(candidate: Candidate) -> Tensor:
        shape = ground.inputs(candidate).shape[1:]
        return torch.randn((count, *shape), generator=ground.generator("margin", candidate))

    return span


def _between_classes(ground: Ground, count: int) -> Span:
    pool = ground.sets["pool"]
    labels = class_of_labels(pool, ground.classifier)
    known = set(labels.tolist())

    @cache  # the classes are few, and each is asked for by many images
    def load_inputs(category: int) -> Tensor:
        rows = np.flatnonzero(labels == category)[:count]
        return torch.stack([ground.classifier.preprocess(pool.open(int(i))) for i in rows])

    def span(candidate: Candidate) -> Tensor:
        order = ground.classifier.logits(ground.inputs(candidate))[0].argsort(descending=True).tolist()
        own, *others = [k for k in order if k in known or k == order[0]]
        if own not in known or not others:
            raise ground.unfit(
                "along what tells classes apart needs pool images of the predicted class and of another",
                "Give a larger pool, or parameters = { directions = 'anywhere' }",
            )
        first, second = load_inputs(own), load_inputs(others[0])
        labelled = [own] * len(first) + [others[0]] * len(second)
        return directions_between(torch.cat([first, second]), labelled, own, others[0])

    return span
