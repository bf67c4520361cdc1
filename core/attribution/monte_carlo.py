"""Mean and variance of heatmaps over random draws, whatever the chunks and the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from core.attribution.method import Query
from core.network.device import chunk_size, in_chunks

DrawSamples = Callable[[Tensor], Iterable[Tensor]]
"""``sampled(rows)``: for each image the values (n, ...) of the draws ``rows`` (n,). Every draw comes from its own
random stream and is the same for all images, so that images and classes compare under common random numbers."""


def moments(query: Query, sampled: DrawSamples, samples: int, what: str) -> tuple[Tensor, Tensor]:
    """Return the mean and unbiased variance (B, ...) over the draws 0 ... ``samples`` - 1, float64."""
    sums: list[Tensor] = []
    done = 0

    def add(rows: Tensor) -> Tensor:
        nonlocal done
        values = (values.double() for values in sampled(rows))
        part = torch.stack([torch.stack([v.sum(0), v.square().sum(0)]) for v in values], 1)
        # Only now, when no image can run out of memory any more: a repeated chunk must not count twice.
        sums[:] = [sums[0] + part if sums else part]
        done += len(rows)
        query.progress(done, samples, what)
        return rows

    in_chunks(add, torch.arange(samples), chunk_size(query.inputs[0], query.classifier.device))
    mean, square = sums[0].cpu() / samples
    return mean, (square - mean.square()).clamp(min=0) * (samples / (samples - 1))
