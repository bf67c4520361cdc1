"""Random numbers for stochastic forward passes: pass t always draws the same ones, whatever runs beside it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from core.device import stream

LEVELS = 2**16
"""A drop probability is a whole number of these: rounding it costs less than 1e-5, and four draws one random word."""


class Draws:
    """One random stream for each pass ``rows`` of ``seed``; each call goes on in all of them."""

    def __init__(self, seed: int, rows: Sequence[int]) -> None:
        self._streams = [stream(seed, row) for row in rows]

    def dropped(self, shape: Sequence[int], rate: float) -> Tensor:
        """(n, *shape) bool, each True with probability ``rate``."""
        size = torch.Size(shape).numel()
        below = round(rate * LEVELS) - LEVELS // 2
        words = torch.empty(len(self._streams), -(-size // 4), dtype=torch.int64)
        for row, generator in zip(words, self._streams, strict=True):
            row.random_(-(2**63), None, generator=generator)
        return (words.view(torch.int16)[:, :size] < below).view(-1, *shape)

    def normal(self, shape: Sequence[int]) -> Tensor:
        """(n, *shape) standard normal, float32."""
        return torch.stack([torch.randn(tuple(shape), generator=generator) for generator in self._streams])
