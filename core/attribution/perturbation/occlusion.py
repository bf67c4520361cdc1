"""Occlusion: slide a window over the image and measure what covering it costs.

Zeiler & Fergus 2013 (arXiv:1311.2901), section 4.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import torch
from torch import Tensor

from core.attribution.cost import Cost
from core.attribution.method import Query, heatmap_method
from core.attribution.records import Family
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.masked import Chunk, Fill, Output, iterate_masked_scores, scores
from core.types import Explanation

Stride = Annotated[int, "Distance from one window to the next, px; 0 is half the window."]

BLOCK = 64
"""Windows whose masks are held in memory at a time."""

WINDOWS_PER_SIDE = 8
"""The default window is this share of the shorter side: 28 of 224 px."""


def _cover_each_window(settings: Mapping[str, Any], classifier: Classifier) -> Cost:
    return Cost(forwards=count_windows(settings, classifier))


@heatmap_method(family=Family.PERTURBATION, cost=_cover_each_window)
def occlusion(
    query: Query,
    *,
    window: int = 0,
    stride: Stride = 0,
    fill: Fill = "mean",
    output: Output = "logit",
    chunk: Chunk = 0,
) -> Explanation:
    """Measure how far the target's output falls when a sliding window is covered, averaged over windows per pixel.

    Zeiler & Fergus 2013 (arXiv:1311.2901), section 4.2, as a loss (f(x) - f(covered), so that evidence is positive)
    and laid back on the pixels: the mean over the windows that cover a pixel, which is also captum's convention.
    Windows start at 0, stride, 2 stride, ... until the far edge is covered; one that sticks out is cut off at the edge.

    Parameters
    ----------
    window
        Side of the window, px; 0 is an eighth of the image's shorter side.
    """
    classifier, inputs, classes = query.classifier, query.inputs, query.classes
    windows = Windows.of(*classifier.input_shape[1:], window, stride)
    whole = scores(classifier, inputs, classes, output)[:, None]
    parts, done = [], 0
    for block, left in iterate_masked_scores(
        classifier, inputs, classes, windows.blocks(), fill=classifier.fill(fill), output=output, chunk=chunk or None
    ):
        parts.append(left)
        done += len(block)
        query.progress(done, len(windows.places), "windows")
    losses = whole - torch.cat(parts, 1).cpu()
    parameters = {"window": windows.side, "stride": windows.stride, "fill": fill, "output": output}
    return query.explain(windows.average(losses), parameters=parameters)


@dataclass(frozen=True)
class Windows:
    """Positions of a square window of ``side`` px, ``stride`` px apart, that cover a (height, width) image."""

    height: int
    width: int
    side: int
    stride: int

    @classmethod
    def of(cls, height: int, width: int, window: int, stride: int) -> Windows:
        """Choose the requested windows; 0 selects the defaults.

        Raises
        ------
        ForetellError
            A negative size, or a stride that leaves pixels uncovered.
        """
        if window < 0 or stride < 0:
            raise ForetellError(f"window={window}, stride={stride}: occlusion needs sizes of at least 1 px.")
        window = window or max(1, min(height, width) // WINDOWS_PER_SIDE)
        stride = stride or max(1, window // 2)
        if stride > window:
            raise ForetellError(f"stride={stride} exceeds window={window}: pixels between the windows stay unseen.")
        return cls(height, width, window, stride)

    @cached_property
    def places(self) -> list[tuple[slice, slice]]:
        """Rows and columns of each window, in px."""
        return list(itertools.product(self._along(self.height), self._along(self.width)))

    def average(self, losses: Tensor) -> Tensor:
        """Return for each pixel the mean of the windows that cover it: (B, windows) -> (B, H, W) float64."""
        lost = torch.zeros(len(losses), self.height, self.width, dtype=torch.float64)
        covered = torch.zeros_like(lost[0])
        for place, loss in zip(self.places, losses.T, strict=True):
            covered[place] += 1
            lost[:, *place] += loss[:, None, None]
        return lost / covered

    def blocks(self) -> Iterator[Tensor]:
        """Return masks (n <= 64, H, W), float32: 0 under the window, 1 elsewhere."""
        for start in range(0, len(self.places), BLOCK):
            part = self.places[start : start + BLOCK]
            masks = torch.ones(len(part), self.height, self.width)
            for mask, place in zip(masks, part, strict=True):
                mask[place] = 0
            yield masks

    def _along(self, length: int) -> list[slice]:
        steps = -(-max(0, length - self.side) // self.stride)
        starts = range(0, steps * self.stride + 1, self.stride)
        return [slice(start, min(start + self.side, length)) for start in starts]


def count_windows(settings: Mapping[str, Any], classifier: Classifier) -> int:
    """Count the windows over an image of a classifier by the parameters ``window`` and ``stride``."""
    return len(Windows.of(*classifier.input_shape[1:], settings["window"], settings["stride"]).places)
