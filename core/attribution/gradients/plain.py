"""Gradient methods, computed without hooks by ``torch.autograd.grad`` on the user's own network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from core.attribution.baselines import Baseline, baselines
from core.attribution.common import gradient_and_logits, residual, shortfall
from core.attribution.cost import gradients
from core.attribution.method import Query, heatmap_method
from core.attribution.paths import PathName, Quadrature, along, select_path
from core.attribution.records import Family
from core.attribution.signs import INFLUENCE, SLOPE, Sign
from core.errors import ForetellError
from core.network.device import send
from core.network.masked import scores, select_output
from core.types import Explanation

MOST_STEPS = 1024
"""Largest number of steps of integrated gradients that a tolerance may choose."""


Channels = Literal["sum", "largest"]


def _slope_or_influence(parameters: Mapping[str, Any]) -> Sign:
    return INFLUENCE if parameters.get("channels") == "largest" else SLOPE


@heatmap_method(family=Family.GRADIENTS, sign=_slope_or_influence, cost=gradients())
def gradient(query: Query, *, channels: Channels = "sum") -> Explanation:
    """Show what a small change of each pixel would do: the gradient of the target's logit.

    Simonyan, Vedaldi & Zisserman 2013 (arXiv:1312.6034), section 3, where the largest absolute value over the channels
    is taken; the sum over the channels, which is signed, is the default here.

    Parameters
    ----------
    channels
        What a pixel gets: the sum over its channels, which is 0 where the network compares colours, or their largest
        absolute value (largest), as in the paper.
    """

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        gradients, logits = gradient_and_logits(query.classifier, part, chosen)
        return gradients.sum(1) if channels == "sum" else gradients.abs().amax(1), logits

    maps, logits = query.in_parts(compute)
    parameters = {} if channels == "sum" else {"channels": channels}
    empty = "The channels of each pixel may cancel: try channels='largest'." if channels == "sum" else ""
    return query.explain(maps, logits=logits, parameters=parameters, empty=empty)


@heatmap_method(family=Family.GRADIENTS, cost=gradients())
def input_x_gradient(query: Query, *, baseline: Literal["zero", "black", "mean"] = "zero") -> Explanation:
    """Multiply the gradient by the difference from a baseline: each pixel's contribution if the network were linear.

    Shrikumar et al. 2016 (arXiv:1605.01713), where the baseline is the network's input 0. The sum over the channels
    is taken after the product.

    Parameters
    ----------
    baseline
        Input that counts as nothing: the network's input 0, or an image in black or in the data's mean colour.
    """
    origin = send(baselines(query.classifier, query.inputs[:1], baseline, seed=0), query.classifier.device)

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        gradients, logits = gradient_and_logits(query.classifier, part, chosen)
        return ((part - origin) * gradients).sum(1), logits

    maps, logits = query.in_parts(compute, "input x gradient")
    return query.explain(maps, logits=logits, parameters={"baseline": baseline})


@heatmap_method(family=Family.GRADIENTS, cost=gradients("steps"))
def integrated_gradients(
    query: Query,
    *,
    steps: int = 64,
    tolerance: float = 0.0,
    baseline: Baseline = "black",
    quadrature: Quadrature = "midpoint",
    path: PathName = "straight",
) -> Explanation:
    """Integrate the gradient along a path from a baseline to the image, which attributes the change in the logit.

    Sundararajan, Taly & Yan 2017 (arXiv:1703.01365), eq. 1 on the straight way and section 3 on any other
    (`core.attribution.paths`). The sum of the heatmap is f(x) - f(baseline) up to the certificate's completeness
    residual. The certificate has the number of steps taken. Only ``baseline="noise"`` is random.

    Parameters
    ----------
    steps
        Points of the path at which the gradient is computed.
    tolerance
        Largest completeness residual, as a share of the change in the logit: steps are doubled, up to 1,024, until it
        is no larger. 0 takes the steps as they are.
    quadrature
        Rule of integration: midpoints, or Gauss-Legendre, which is better where the path is straight and the gradient
        smooth along it.
    path
        Path to the image: straight, where all pixels change together, or from blurred to sharp (blur), which needs the
        baseline blur.
    """
    if steps < 1 or not tolerance >= 0:
        raise ForetellError(
            f"steps={steps}: integrated gradients need at least 1 step."
            if steps < 1
            else f"tolerance={tolerance:g} must not be negative: 0 takes 'steps' as they are."
        )
    classifier, inputs, classes = query.classifier, query.inputs, query.classes
    way = select_path(path, baseline)
    origins = baselines(classifier, inputs, baseline, query.seed)
    logits = classifier.logits(inputs)
    starts = scores(classifier, origins, classes, "logit").tolist()
    ends = select_output(logits.double(), classes, "logit").tolist()
    settings: dict[str, Any] = {"baseline": baseline, "quadrature": quadrature, "path": path}
    settings |= {"tolerance": tolerance} if tolerance else {}
    shared: dict[str, Any] = {"seed": query.seed} if baseline == "noise" else {}
    maps, known = torch.empty(len(inputs), *inputs.shape[2:]), [shared] * len(inputs)
    short = torch.arange(len(inputs))
    for count in _counts(steps, tolerance):
        report = _reporter(query, len(short), count)
        given = classifier, way, origins[short], inputs[short], classes[short]
        maps[short] = along(*given, quadrature, count, report)
        missed = [residual(maps[i], starts[i], ends[i]) for i in short.tolist()]
        for i, miss in zip(short.tolist(), missed, strict=True):
            facts = {"parameters": {"steps": count} | settings, "completeness": miss}
            known[i] = shared | facts | {"warnings": shortfall(miss, _remedy(count, tolerance))}
        short = short[torch.tensor([not (miss is None or abs(miss) <= tolerance) for miss in missed])]
        if not len(short):
            break
    return query.explain(maps, known, logits=logits)


def _reporter(query: Query, images: int, count: int) -> Callable[[int], None]:
    """Return what reports progress of ``count`` points of the last ``images``; those before have all of theirs."""
    total = len(query.inputs) * count
    done = total - images * count

    def report(points: int) -> None:
        nonlocal done
        done += points
        query.progress(done, total, "integrated gradients")

    return report


def _counts(steps: int, tolerance: float) -> Iterator[int]:
    """Yield the numbers of steps to try, until one is enough."""
    yield steps
    while tolerance and 2 * steps <= MOST_STEPS:
        steps *= 2
        yield steps


def _remedy(steps: int, tolerance: float) -> str:
    if tolerance:
        return f"{steps} steps are too few: set quadrature='gauss_legendre', or another baseline."
    return f"Raise 'steps' (now {steps}), or set a tolerance such as 0.05, which chooses them."
