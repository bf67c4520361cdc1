"""Expected gradients: integrated gradients averaged over references, so that no single one has to be chosen.

References must come from somewhere. A method knows no data set, so it draws them from a source that prefers no colour,
or takes the user's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from core.attribution.common import output_gradient, residual, shortfall
from core.attribution.cost import sampled_references
from core.attribution.method import Query, heatmap_method
from core.attribution.monte_carlo import moments
from core.attribution.records import Family
from core.attribution.references import Pick, ReferenceSource, describe_references, picker
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import send, stream
from core.types import Explanation

BLOCK = 64
"""References that are predicted at a time."""
KEPT = 128
"""References held in memory, 77 MB at 224 px: with more samples they are drawn twice, for gradients and logits."""


@heatmap_method(family=Family.GRADIENTS, cost=sampled_references)
def expected_gradients(
    query: Query, *, samples: int = 100, source: ReferenceSource = "colours", references: Tensor | None = None
) -> Explanation:
    """Average integrated gradients over many references: each pixel's contribution relative to the mean output.

    Erion et al. 2021 (arXiv:1906.10670), eq. 3, the limit of GradientSHAP: each sample is one reference and one point
    of the path from it. The heatmap sums to f(x) less the mean f of the references drawn, up
    to the certificate's completeness residual; `Explanation.error` is the standard error of the Monte Carlo mean.

    Parameters
    ----------
    samples
        Number of samples, each of one random reference and one random point of the path from it to the image.
    references
        References (N, C, H, W), such as training images, drawn with replacement in place of those of ``source``.
    """
    if samples < 2:
        raise ForetellError(f"samples={samples}: expected gradients need at least 2 samples.")
    classifier, inputs, classes, seed = query.classifier, query.inputs, query.classes, query.seed
    draw = lru_cache(KEPT)(partial(_draw_reference, picker(classifier, source, references), seed))

    sent = send(inputs, classifier.device)

    @lru_cache(1)  # all images have the same references
    def begin(start: int, stop: int) -> tuple[Tensor, Tensor]:
        origins, points = zip(*map(draw, range(start, stop)), strict=True)
        starts, shares = (send(torch.stack(values), classifier.device)[:, None] for values in (origins, points))
        return starts, shares[..., None, None, None]

    def sample_attributions(rows: slice, those: slice) -> Tensor:
        start, share = begin(rows.start, rows.stop)
        ways = sent[those] - start
        seen, targets = (start + share * ways).flatten(0, 1), classes[those].repeat(len(ways))
        return (ways * output_gradient(classifier, seen, targets).view_as(ways)).sum(2)

    mean, variance = moments(query, sample_attributions, samples, "expected gradients")
    error = (variance / samples).sqrt().float()
    settings = {"samples": samples} | describe_references(source, references)
    starts = _average(classifier, draw, samples)[classes].tolist()
    logits = classifier.logits(inputs)
    ends = logits.gather(1, classes[:, None])[:, 0].tolist()
    missed = [residual(m, a, b) for m, a, b in zip(mean, starts, ends, strict=True)]
    remedy = f"Raise 'samples' (now {samples})."
    known = [{"completeness": m, "warnings": shortfall(m, remedy)} for m in missed]
    facts: dict[str, Any] = {"samples": samples, "seed": seed, "parameters": settings}
    return query.explain(mean, known, error=error, logits=logits, **facts)


def _draw_reference(pick: Pick, seed: int, index: int) -> tuple[Tensor, Tensor]:
    """Draw the reference (C, H, W) and the point of the path in [0, 1) of one sample."""
    generator = stream(seed, index)
    point = torch.rand((), generator=generator)
    return pick(generator), point


def _average(classifier: Classifier, draw: Callable[[int], tuple[Tensor, Tensor]], samples: int) -> Tensor:
    """Compute the mean logits (K,) of the references drawn, float64 on the CPU."""
    total = torch.zeros(len(classifier.categories), dtype=torch.float64, device=classifier.device)
    for start in range(0, samples, BLOCK):
        drawn = [draw(index)[0] for index in range(start, min(start + BLOCK, samples))]
        total += classifier.logits(torch.stack(drawn), keep=True).double().sum(0)
    return total.cpu() / samples
