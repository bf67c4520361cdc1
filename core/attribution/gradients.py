"""The gradient family: hook-free, by ``torch.autograd.grad`` on the user's own network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from core.attribution.baselines import Baseline, baselines
from core.attribution.common import certificates, checked, gradient_and_logits, in_parts, residual
from core.attribution.paths import PathName, Quadrature, along, chosen_path
from core.classifier import Classifier
from core.device import draw_seed
from core.errors import ForetellError
from core.masked import scores
from core.types import Explanation, Progress, silent


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

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        found, logits = gradient_and_logits(classifier, part, chosen)
        return found.sum(1), logits

    maps, logits = in_parts(compute, inputs, classes, progress, "gradient")
    known: list[dict[str, Any]] = [{} for _ in targets]
    return Explanation(maps, 0.0, certificates(classifier, "gradient", inputs, classes, known, logits))


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

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        found, logits = gradient_and_logits(classifier, part, chosen)
        return ((part - origin) * found).sum(1), logits

    maps, logits = in_parts(compute, inputs, classes, progress, "input x gradient")
    known: list[dict[str, Any]] = [{"parameters": {"baseline": baseline}} for _ in targets]
    return Explanation(maps, 0.0, certificates(classifier, "input_x_gradient", inputs, classes, known, logits))


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
    path: PathName = "straight",
) -> Explanation:
    """Gradient collected along a way from a baseline to the picture: what made the logit what it is.

    Sundararajan, Taly & Yan 2017 (arXiv:1703.01365), eq. 1 on the straight way and section 3 on any other
    (`core.attribution.paths`), by a rule with ``steps`` points: midpoints, or Gauss-Legendre, which is the better one
    where the way is straight and the gradient smooth along it. The sum of the map is f(x) - f(baseline) up to the
    certificate's completeness residual. Only ``baseline="noise"`` is random.
    """
    if steps < 1:
        raise ForetellError(f"steps={steps}: integrated gradients need at least 1 step.")
    inputs, classes = checked(classifier, images, targets)
    way = chosen_path(path, baseline)
    seed = draw_seed(generator or torch.Generator().manual_seed(0))
    origins = baselines(classifier, inputs, baseline, seed)
    maps = []
    for x, target, origin in zip(inputs, classes.tolist(), origins, strict=True):
        maps.append(along(classifier, way, origin, x, target, quadrature, steps))
        progress(len(maps), len(inputs), "integrated gradients")
    settings = {"steps": steps, "baseline": baseline, "quadrature": quadrature, "path": path}
    facts: dict[str, Any] = {"parameters": settings} | ({"seed": seed} if baseline == "noise" else {})
    starts, ends = (scores(classifier, points, classes, "logit").tolist() for points in (origins, inputs))
    known = [facts | {"completeness": residual(m, a, b)} for m, a, b in zip(maps, starts, ends, strict=True)]
    name = "integrated_gradients"
    return Explanation(torch.stack(maps), 0.0, certificates(classifier, name, inputs, classes, known))
