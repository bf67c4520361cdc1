"""Random numbers for stochastic forward passes: pass t always draws the same ones, whatever else runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from core.network.device import stream

LEVELS = 2**16
"""Equally likely values of a draw, so that four draws cost one random word: a drop probability is a whole number of
levels, at most half of one from what was asked, and a normal number one of as many."""
CACHED = 2**16
"""Draws looked up at once: what is made of them on the way stays in the processor's cache."""


class Draws:
    """One random stream for each pass ``rows`` of ``seed``; each call goes on in all of them."""

    def __init__(self, seed: int, rows: Sequence[int]) -> None:
        # SFC64 gives a word in half of the time of torch's Mersenne twister, and random words are most of the cost.
        self._words = [np.random.SFC64(stream(seed, row).initial_seed()) for row in rows]

    def __len__(self) -> int:
        return len(self._words)

    def each(self) -> Iterator[Draws]:
        """Return the draws of each pass alone, which go on in the same streams: for draws too large to hold for all."""
        for words in self._words:
            alone = Draws(0, ())
            alone._words = [words]
            yield alone

    def draw_kept(self, shape: Sequence[int], rate: float) -> Iterator[Tensor]:
        """Draw (*shape) int16 for each pass: 0 with probability ``rate``, a whole number of levels, and else 1."""
        for draws in self._levels(shape):
            yield torch.ge(draws, count_dropped_levels(rate) - LEVELS // 2, out=draws)

    def draw_normal(self, shape: Sequence[int], mean: float = 0.0, deviation: float = 1.0) -> Iterator[Tensor]:
        """Draw normal (*shape) float32 for each pass: `LEVELS` equally likely values, none beyond 4.33 deviations."""
        table = _normals(mean, deviation)
        for draws in self._levels(shape):
            values = torch.empty(draws.shape)
            for some, out in zip(*(torch.split(t.view(-1), CACHED) for t in (draws, values)), strict=True):
                torch.index_select(table, 0, some.view(torch.uint16).long(), out=out)
            yield values

    def _levels(self, shape: Sequence[int]) -> Iterator[Tensor]:
        """Draw (*shape) int16 for each pass, every value equally likely."""
        size = torch.Size(shape).numel()
        for words in self._words:
            yield torch.from_numpy(words.random_raw(-(-size // 4)).view(np.int16)[:size]).view(*shape)


@lru_cache(maxsize=8)
def _normals(mean: float, deviation: float) -> Tensor:
    """Compute the middles (LEVELS,) of equally likely parts of a normal distribution, their variance made exact."""
    middles: Tensor = torch.special.ndtri((torch.arange(LEVELS, dtype=torch.float64) + 0.5) / LEVELS)
    return (mean + deviation * middles / middles.std(correction=0)).float()


def count_dropped_levels(rate: float) -> int:
    """Count how many of `LEVELS` are dropped; a rate below 1 keeps at least one."""
    return min(round(rate * LEVELS), LEVELS - 1)


def enlargement(rate: float) -> float:
    """Return the factor of the kept values that keeps the mean, by the probability as drawn."""
    return LEVELS / (LEVELS - count_dropped_levels(rate))
