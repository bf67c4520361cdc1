"""The gradient family: hook-free, by ``torch.autograd.grad`` on the user's own network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from core.attribution.common import certificates, checked, output_gradient
from core.classifier import Classifier
from core.device import chunk_size
from core.errors import ForetellError
from core.types import Explanation, Progress, silent

Baseline = Literal["black", "mean"]


def gradient(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    *,
    generator: torch.Generator | None = None,  # noqa: ARG001 - the contract of all methods
    progress: Progress = silent,
) -> Explanation:
    """Gradient of the target's logit, summed over the channels: what a small change of a pixel would do.

    Simonyan, Vedaldi & Zisserman 2013 (arXiv:1312.6034), section 3; signed here, where they take the largest
    absolute value over the channels.
    """
    inputs, classes = checked(classifier, images, targets)
    size = chunk_size(inputs[0])
    maps = []
    for start in range(0, len(inputs), size):
        part = slice(start, start + size)
        maps.append(output_gradient(classifier, inputs[part], classes[part]).sum(1))
        progress(min(start + size, len(inputs)), len(inputs), "gradient")
    known: list[dict[str, Any]] = [{} for _ in targets]
    return Explanation(torch.cat(maps), 0.0, certificates(classifier, "gradient", inputs, classes, known))


def integrated_gradients(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    *,
    generator: torch.Generator | None = None,  # noqa: ARG001 - the contract of all methods
    progress: Progress = silent,
    steps: int = 64,
    baseline: Baseline = "black",
) -> Explanation:
    """Gradient averaged along the straight way from a baseline, times the way: what made the logit what it is.

    Sundararajan, Taly & Yan 2017 (arXiv:1703.01365), eq. 1, by the midpoint rule with ``steps`` points. The sum of
    the map is f(x) - f(baseline) up to the certificate's completeness residual.
    """
    if steps < 1:
        raise ForetellError(f"steps={steps}: integrated gradients need at least 1 step.")
    inputs, classes = checked(classifier, images, targets)
    origin = classifier.fill(baseline)
    maps = []
    for x, target in zip(inputs, classes.tolist(), strict=True):
        maps.append(_path_integral(classifier, x, target, origin, steps))
        progress(len(maps), len(inputs), "integrated gradients")
    ends = classifier.logits(inputs).gather(1, classes[:, None])[:, 0]
    starts = classifier.logits(origin[None])[0, classes]
    known = [
        {"completeness": _residual(m, a, b), "parameters": {"steps": steps, "baseline": baseline}}
        for m, a, b in zip(maps, starts.tolist(), ends.tolist(), strict=True)
    ]
    name = "integrated_gradients"
    return Explanation(torch.stack(maps), 0.0, certificates(classifier, name, inputs, classes, known))


def _path_integral(classifier: Classifier, x: Tensor, target: int, origin: Tensor, steps: int) -> Tensor:
    """Integrated gradients (H, W) of one input (C, H, W)."""
    total = torch.zeros_like(x, dtype=torch.float64)
    for alphas in torch.split((torch.arange(steps) + 0.5) / steps, chunk_size(x)):
        points = origin + alphas[:, None, None, None] * (x - origin)
        total += output_gradient(classifier, points, torch.full((len(alphas),), target)).double().sum(0)
    return (total / steps * (x - origin)).sum(0).float()


def _residual(attribution: Tensor, start: float, end: float) -> float | None:
    """(sum of the map - (f(x) - f(baseline))) / |f(x) - f(baseline)|; None where the difference is 0."""
    difference = end - start
    return (float(attribution.double().sum()) - difference) / abs(difference) if difference else None
