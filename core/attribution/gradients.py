"""The gradient family: hook-free, by ``torch.autograd.grad`` on the user's own network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from core.attribution.baselines import Baseline, baselines
from core.attribution.common import certificates, checked, in_parts, output_gradient, residual
from core.classifier import Classifier
from core.device import chunk_size, draw_seed, in_chunks
from core.errors import ForetellError
from core.types import Explanation, Progress, silent

Quadrature = Literal["midpoint", "gauss_legendre"]


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

    def compute(part: Tensor, chosen: Tensor) -> Tensor:
        return output_gradient(classifier, part, chosen).sum(1)

    maps = in_parts(compute, inputs, classes, progress, "gradient")
    known: list[dict[str, Any]] = [{} for _ in targets]
    return Explanation(maps, 0.0, certificates(classifier, "gradient", inputs, classes, known))


def input_x_gradient(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    *,
    generator: torch.Generator | None = None,  # noqa: ARG001 - the contract of all methods
    progress: Progress = silent,
    baseline: Literal["zero", "black", "mean"] = "zero",
) -> Explanation:
    """Gradient times the input as measured from a baseline: what each pixel adds if the network were linear.

    Shrikumar et al. 2016 (arXiv:1605.01713), where the baseline is the network's input 0. The sum over the channels
    is taken after the product.
    """
    inputs, classes = checked(classifier, images, targets)
    origin = baselines(classifier, inputs[:1], baseline, seed=0)

    def compute(part: Tensor, chosen: Tensor) -> Tensor:
        return ((part - origin) * output_gradient(classifier, part, chosen)).sum(1)

    maps = in_parts(compute, inputs, classes, progress, "input x gradient")
    known: list[dict[str, Any]] = [{"parameters": {"baseline": baseline}} for _ in targets]
    return Explanation(maps, 0.0, certificates(classifier, "input_x_gradient", inputs, classes, known))


def integrated_gradients(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    *,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    steps: int = 64,
    baseline: Baseline = "black",
    quadrature: Quadrature = "midpoint",
) -> Explanation:
    """Gradient averaged along the straight way from a baseline, times the way: what made the logit what it is.

    Sundararajan, Taly & Yan 2017 (arXiv:1703.01365), eq. 1, by a rule with ``steps`` points: midpoints, or
    Gauss-Legendre, which is the better one where the gradient is smooth along the way. The sum of the map is
    f(x) - f(baseline) up to the certificate's completeness residual. Only ``baseline="noise"`` is random.
    """
    if steps < 1:
        raise ForetellError(f"steps={steps}: integrated gradients need at least 1 step.")
    inputs, classes = checked(classifier, images, targets)
    seed = draw_seed(generator or torch.Generator().manual_seed(0))
    origins = baselines(classifier, inputs, baseline, seed)
    rule = _rule(quadrature, steps)
    maps = []
    for x, target, origin in zip(inputs, classes.tolist(), origins, strict=True):
        maps.append(_path_integral(classifier, x, target, origin, rule))
        progress(len(maps), len(inputs), "integrated gradients")
    ends, starts = (classifier.logits(points).gather(1, classes[:, None])[:, 0] for points in (inputs, origins))
    facts: dict[str, Any] = {"parameters": {"steps": steps, "baseline": baseline, "quadrature": quadrature}}
    if baseline == "noise":
        facts["seed"] = seed
    known = [
        facts | {"completeness": residual(m, a, b)}
        for m, a, b in zip(maps, starts.tolist(), ends.tolist(), strict=True)
    ]
    name = "integrated_gradients"
    return Explanation(torch.stack(maps), 0.0, certificates(classifier, name, inputs, classes, known))


def _rule(quadrature: str, steps: int) -> tuple[Tensor, Tensor]:
    """Points (steps,) in [0, 1] and weights (steps,) that sum to 1, float64."""
    if quadrature == "midpoint":
        points = (torch.arange(steps, dtype=torch.float64) + 0.5) / steps
        return points, torch.full_like(points, 1 / steps)
    nodes, weights = (torch.from_numpy(array) for array in np.polynomial.legendre.leggauss(steps))
    return (nodes + 1) / 2, weights / 2


def _path_integral(
    classifier: Classifier, x: Tensor, target: int, origin: Tensor, rule: tuple[Tensor, Tensor]
) -> Tensor:
    """Integrated gradients (H, W) of one input (C, H, W)."""
    total = torch.zeros_like(x, dtype=torch.float64)

    def add(rows: Tensor) -> Tensor:
        nonlocal total
        points, weights = (part[rows][:, None, None, None] for part in rule)
        on_the_way = origin + points.float() * (x - origin)
        gradients = output_gradient(classifier, on_the_way, torch.full((len(rows),), target))
        total += (weights * gradients).sum(0)
        return rows

    in_chunks(add, torch.arange(len(rule[0])), chunk_size(x))
    return (total * (x - origin)).sum(0).float()
