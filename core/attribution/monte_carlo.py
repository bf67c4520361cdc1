"""Mean and variance of heatmaps over random draws, whatever the chunks and the batch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from core.attribution.method import Query
from core.network.device import chunk_size, in_common_passes

DrawSamples = Callable[[slice, slice], Tensor]
"""``sampled(rows, those)``: the values (n, b, ...) of the draws ``rows`` for the images ``those``. Every draw comes
from its own random stream and is the same for all images, so that images and classes compare under common random
numbers."""


def moments(query: Query, sampled: DrawSamples, samples: int, what: str) -> tuple[Tensor, Tensor]:
    """Return the mean and unbiased variance (B, ...) over the draws 0 ... ``samples`` - 1, float64 on the CPU.

    The sums stay on the network's device until the end.
    """
    images, device = len(query.inputs), query.classifier.device
    totals: list[Tensor] = []
    done = 0

    def add(rows: slice, those: slice) -> None:
        nonlocal done
        values = sampled(rows, those).double()
        part = torch.stack([values.sum(0), values.square().sum(0)])
        # Only now, when no image can run out of memory any more: a repeated call must not count twice.
        if not totals:  # -0 and not 0: it leaves the sign of a first -0
            totals.append(part.new_full((2, images, *part.shape[2:]), -0.0))
        totals[0][:, those] += part
        done += len(values) * part.shape[1]
        query.progress(done // images, samples, what)

    in_common_passes(add, samples, images, chunk_size(query.inputs[0], device), device)
    mean, square = totals[0].cpu() / samples
    return mean, (square - mean.square()).clamp(min=0) * (samples / (samples - 1))
