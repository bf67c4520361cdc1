"""Deletion and insertion: the output as pixels are removed or inserted in the order of the heatmap.

Petsiuk, Das & Saenko 2018 (arXiv:1806.07421), section 4.2 and algorithms 1 and 2 of its supplement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from core.attribution.baselines import baselines
from core.attribution.common import prepare_inputs
from core.errors import ForetellError
from core.faithfulness.ranking import fitting, ranks
from core.network.classifier import Classifier
from core.network.masked import Output, iterate_masked_scores
from core.types import Progress, silent

Substrate = Annotated[
    Literal["mean", "black", "blur"],
    "What replaces removed pixels: the data's mean colour, black, or the image itself blurred.",
]

BLOCK = 64
"""Points whose masks are held in memory at a time."""


@dataclass(frozen=True)
class Curve:
    """The network's output for each image along the order of its heatmap.

    Attributes
    ----------
    measure, substrate, output
        The settings it was made with; curves of different settings do not compare.
    fractions
        (S + 1,) float64 from 0 to 1: the share of pixels deleted or inserted at each point.
    values
        (B, S + 1) float64: the target's output at each point.
    area
        (B,) float64: area under the curve by the trapezoid rule. Of a faithful heatmap it is small for deletion and
        large for insertion.
    """

    measure: str
    substrate: str
    output: str
    fractions: Tensor
    values: Tensor
    area: Tensor


def deletion(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    maps: Tensor,
    *,
    progress: Progress = silent,
    steps: int = 100,
    substrate: Substrate = "mean",
    output: Output = "probability",
    chunk: int = 0,
) -> Curve:
    """Measure the target's output as the highest-valued pixels are replaced first, from f(x) to f(substrate).

    Pixels go by decreasing value of ``maps`` (B, H, W), equal ones row by row from the top left; after step s of
    ``steps`` s / steps of them are gone, rounded to whole pixels. ``chunk`` (0: by memory) changes speed and memory,
    never the curve.

    Raises
    ------
    ForetellError
        Heatmaps that do not fit the images or are not finite; fewer steps than 1 or more than pixels.
    """
    kept = classifier, images, targets, maps, lambda rank, gone: rank >= gone
    return _draw_curve("deletion", *kept, steps, substrate, output, chunk, progress)


def insertion(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    maps: Tensor,
    *,
    progress: Progress = silent,
    steps: int = 100,
    substrate: Substrate = "blur",
    output: Output = "probability",
    chunk: int = 0,
) -> Curve:
    """Measure the target's output as the highest-valued pixels are inserted first, from f(substrate) to f(x).

    Order, steps, errors and ``chunk`` are those of `deletion`.
    """
    kept = classifier, images, targets, maps, lambda rank, come: rank < come
    return _draw_curve("insertion", *kept, steps, substrate, output, chunk, progress)


def _draw_curve(
    measure: str,
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    maps: Tensor,
    shown: Callable[[Tensor, Tensor], Tensor],
    steps: int,
    substrate: Substrate,
    output: Output,
    chunk: int,
    progress: Progress,
) -> Curve:
    """Compute a curve whose points show the image's pixels that ``shown(rank, count)`` selects."""
    inputs, classes = prepare_inputs(classifier, images, targets)
    order, pixels = ranks(fitting(maps, inputs)), inputs[0, 0].numel()
    if not 1 <= steps <= pixels:
        raise ForetellError(f"steps={steps}: an image of {pixels} pixels takes 1 to {pixels} steps.")
    counts = torch.linspace(0, pixels, steps + 1, dtype=torch.float64).round()
    fills = baselines(classifier, inputs, substrate, 0)
    values = torch.empty(len(inputs), steps + 1, dtype=torch.float64)
    for index, rank in enumerate(order):
        one, done = slice(index, index + 1), 0
        masks = _blocks(rank, counts, shown)
        for block, scores in iterate_masked_scores(
            classifier, inputs[one], classes[one], masks, fill=fills[index], output=output, chunk=chunk or None
        ):
            values[index, done : done + len(block)] = scores[0].cpu()
            done += len(block)
            progress(index * len(counts) + done, values.numel(), "points")
    fractions = counts / pixels
    return Curve(measure, substrate, output, fractions, values, torch.trapezoid(values, fractions))


def _blocks(rank: Tensor, counts: Tensor, shown: Callable[[Tensor, Tensor], Tensor]) -> Iterator[Tensor]:
    """Return masks (n <= 64, H, W) float32, one per point."""
    for start in range(0, len(counts), BLOCK):
        yield shown(rank, counts[start : start + BLOCK, None, None]).float()
