"""Gradients under noise: their mean (SmoothGrad) and their variance (VarGrad).

The noise of sample i comes from its own random stream and is the same for every image of a batch, so neither the
batch nor its chunks change a heatmap, and images and classes compare under common random numbers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

import torch
from torch import Tensor

from core.attribution.common import output_gradient
from core.attribution.cost import gradients
from core.attribution.method import Query, heatmap_method
from core.attribution.monte_carlo import moments
from core.attribution.records import Family
from core.attribution.signs import SLOPE, VARYING
from core.errors import ForetellError
from core.network.device import draw_streams, send
from core.types import Explanation

Copies = Annotated[int, "Number of noisy copies of the image."]
NoiseLevel = Annotated[float, "Standard deviation of the noise as a share of the input's range, max(x) - min(x)."]


@heatmap_method(family=Family.GRADIENTS, sign=SLOPE, cost=gradients("samples"))
def smoothgrad(query: Query, *, samples: Copies = 50, noise: NoiseLevel = 0.15) -> Explanation:
    """Average the gradient of the target's logit over noisy copies of the image, which reduces its own noise.

    Smilkov et al. 2017 (arXiv:1706.03825), section 3. Signed, summed over the channels; `Explanation.error` is the
    standard error of the Monte Carlo mean.
    """
    facts = _facts("SmoothGrad", samples, noise, query.seed)
    mean, variance = _moments(query, samples, noise, summed=True)
    return query.explain(mean, error=(variance / samples).sqrt(), **facts)


@heatmap_method(family=Family.GRADIENTS, sign=VARYING, cost=gradients("samples"))
def vargrad(query: Query, *, samples: Copies = 50, noise: NoiseLevel = 0.15) -> Explanation:
    """Compute the variance of the gradient of the target's logit over noisy copies of the image (never negative).

    Adebayo et al. 2018 (arXiv:1810.03292) and Hooker et al. 2019 (arXiv:1806.10758). The unbiased variance of each
    channel's gradient, summed over the channels.
    """
    facts = _facts("VarGrad", samples, noise, query.seed)
    _, variance = _moments(query, samples, noise, summed=False)
    return query.explain(variance.sum(1), **facts)


def _facts(name: str, samples: int, noise: float, seed: int) -> dict[str, Any]:
    if samples < 2:
        raise ForetellError(f"samples={samples}: {name} needs at least 2 noisy copies.")
    if not 0 < noise < float("inf"):
        raise ForetellError(f"noise={noise}: {name} needs a share of the input's range above 0, such as 0.15.")
    return {"samples": samples, "seed": seed, "parameters": {"samples": samples, "noise": noise}}


def _moments(query: Query, samples: int, noise: float, *, summed: bool) -> tuple[Tensor, Tensor]:
    """Compute mean and unbiased variance over the noise of the gradients (B, C, H, W), or of their sum over C."""
    inputs, seed, device = query.inputs, query.seed, query.classifier.device
    deviations = send(noise * (inputs.amax((1, 2, 3)) - inputs.amin((1, 2, 3))), device)[:, None, None, None]
    sent = send(inputs, device)

    @lru_cache(1)  # all images have the same noise
    def draw(start: int, stop: int) -> Tensor:
        blocks = range(start, stop)
        drawn = draw_streams(lambda one: torch.randn(inputs.shape[1:], generator=one), seed, blocks, device)
        return send(torch.stack(drawn), device)[:, None]

    def sample_gradients(rows: slice, those: slice) -> Tensor:
        seen = sent[those] + deviations[those] * draw(rows.start, rows.stop)
        targets = query.classes[those].repeat(len(seen))
        gradients = output_gradient(query.classifier, seen.flatten(0, 1), targets).view_as(seen).double()
        return gradients.sum(2) if summed else gradients

    return moments(query, sample_gradients, samples, "noisy gradients")
