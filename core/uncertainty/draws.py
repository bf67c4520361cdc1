"""Random numbers for stochastic forward passes: pass t always draws the same ones, whatever runs beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from core.device import stream

LEVELS = 2**16
"""A drop probability is a whole number of these, at most half of one from what was asked: four draws cost one word."""


class Draws:
    """One random stream for each pass ``rows`` of ``seed``; each call goes on in all of them."""

    def __init__(self, seed: int, rows: Sequence[int]) -> None:
        self._streams = [stream(seed, row) for row in rows]
        # SFC64 gives a word in half of the time of torch's Mersenne twister, and random words are most of the cost.
        self._words = [np.random.SFC64(generator.initial_seed()) for generator in self._streams]

    def __len__(self) -> int:
        return len(self._streams)

    def each(self) -> Iterator[Draws]:
        """The draws of each pass alone, which go on in the same streams: for draws too large to hold for all."""
        for generator, words in zip(self._streams, self._words, strict=True):
            alone = Draws(0, ())
            alone._streams, alone._words = [generator], [words]
            yield alone

    def kept(self, shape: Sequence[int], rate: float) -> Iterator[Tensor]:
        """For each pass (*shape) int16: 0 with probability ``rate``, a whole number of levels, and else 1."""
        size = torch.Size(shape).numel()
        for words in self._words:
            draws = torch.from_numpy(words.random_raw(-(-size // 4)).view(np.int16)[:size])
            yield torch.ge(draws, dropped_levels(rate) - LEVELS // 2, out=draws).view(*shape)

    def normal(self, shape: Sequence[int]) -> Tensor:
        """(n, *shape) standard normal, float32."""
        found = torch.empty((len(self), *shape))
        for row, generator in zip(found, self._streams, strict=True):
            row.normal_(generator=generator)
        return found


def dropped_levels(rate: float) -> int:
    """Of `LEVELS` how many are dropped; a rate below 1 keeps at least one."""
    return min(round(rate * LEVELS), LEVELS - 1)


def enlargement(rate: float) -> float:
    """What the kept values are multiplied with, so that their mean is that of all: of the probability as drawn."""
    return LEVELS / (LEVELS - dropped_levels(rate))
