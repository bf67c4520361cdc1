"""Gradients under noise: their mean (SmoothGrad) and their variance (VarGrad).

The noise of sample i comes from its own random stream and is the same for every image of a batch, so neither the
batch nor its chunks change a heatmap, and images and classes compare under common random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from core.attribution.common import certificates, output_gradient, prepare_inputs
from core.attribution.monte_carlo import moments
from core.classifier import Classifier
from core.device import draw_seed, stream
from core.errors import ForetellError
from core.types import Explanation, Progress, silent


def smoothgrad(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    *,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    samples: int = 50,
    noise: float = 0.15,
) -> Explanation:
    """Average the gradient of the target's logit over noisy copies of the image, which reduces its own noise.

    Smilkov et al. 2017 (arXiv:1706.03825), section 3. ``noise`` is the standard deviation as a share of the range
    max(x) - min(x) of the input. Signed, summed over the channels; `Explanation.error` is the standard error of the
    Monte Carlo mean.
    """
    inputs, classes = prepare_inputs(classifier, images, targets)
    facts, seed = _facts("SmoothGrad", samples, noise, generator)
    mean, variance = _moments(classifier, inputs, classes, samples, noise, seed, progress, summed=True)
    error = (variance / samples).sqrt()
    known = [facts | {"standard_error": float(e.max())} for e in error]
    named = certificates(classifier, "smoothgrad", inputs, classes, known)
    return Explanation(mean.float(), 0.0, named, error.float())


def vargrad(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    *,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    samples: int = 50,
    noise: float = 0.15,
) -> Explanation:
    """Compute the variance of the gradient of the target's logit over noisy copies of the image (never negative).

    Adebayo et al. 2018 (arXiv:1810.03292) and Hooker et al. 2019 (arXiv:1806.10758). The unbiased variance of each
    channel's gradient, summed over the channels; ``noise`` as in `smoothgrad`.
    """
    inputs, classes = prepare_inputs(classifier, images, targets)
    facts, seed = _facts("VarGrad", samples, noise, generator)
    _, variance = _moments(classifier, inputs, classes, samples, noise, seed, progress, summed=False)
    named = certificates(classifier, "vargrad", inputs, classes, [facts for _ in targets])
    return Explanation(variance.sum(1).float(), 0.0, named)


def _facts(name: str, samples: int, noise: float, generator: torch.Generator | None) -> tuple[dict[str, Any], int]:
    if samples < 2:
        raise ForetellError(f"samples={samples}: {name} needs at least 2 noisy copies.")
    if not 0 < noise < float("inf"):
        raise ForetellError(f"noise={noise}: {name} needs a share of the input's range above 0, such as 0.15.")
    seed = draw_seed(generator or torch.Generator().manual_seed(0))
    return {"samples": samples, "seed": seed, "parameters": {"samples": samples, "noise": noise}}, seed


def _moments(
    classifier: Classifier,
    inputs: Tensor,
    targets: Tensor,
    samples: int,
    noise: float,
    seed: int,
    progress: Progress,
    *,
    summed: bool,
) -> tuple[Tensor, Tensor]:
    """Compute mean and unbiased variance over the noise of the gradients (B, C, H, W), or of their sum over C."""
    deviations = noise * (inputs.amax((1, 2, 3)) - inputs.amin((1, 2, 3)))

    def sample_gradients(rows: Tensor) -> Iterator[Tensor]:
        drawn = torch.stack([torch.randn(inputs.shape[1:], generator=stream(seed, i)) for i in rows.tolist()])
        for x, target, deviation in zip(inputs, targets, deviations, strict=True):
            gradients = output_gradient(classifier, x + deviation * drawn, target.expand(len(rows))).double()
            yield gradients.sum(1) if summed else gradients

    return moments(sample_gradients, inputs, samples, progress, "noisy gradients")
