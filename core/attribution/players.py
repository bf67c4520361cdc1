"""The players of a cooperative game on an image: the cells of a regular grid, visible or covered.

Shared by the Shapley methods and LIME.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import torch
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.masked import Output, iterate_masked_scores, scores
from core.types import Progress

GridSide = Annotated[int, "Cells per side of the grid that the image is divided into."]

BLOCK = 64
"""Coalitions whose masks are held in memory at a time and drawn from one random stream."""


@dataclass(frozen=True)
class Cells:
    """The (height, width) pixels cut into ``grid`` x ``grid`` cells, as equal as whole pixels allow."""

    height: int
    width: int
    grid: int

    def __post_init__(self) -> None:
        if not 2 <= self.grid <= min(self.height, self.width):
            raise ForetellError(
                f"grid={self.grid} is out of range: give 2 to {min(self.height, self.width)} cells a side."
            )

    @property
    def players(self) -> int:
        """Return the number of cells."""
        return self.grid**2

    @cached_property
    def index(self) -> Tensor:
        """The cell of each pixel, (H, W) int64, row by row."""
        row, column = (torch.arange(side) * self.grid // side for side in (self.height, self.width))
        return row[:, None] * self.grid + column

    def masks(self, coalitions: Tensor) -> Tensor:
        """Return masks (n, H, W) float32 that show the cells present in coalitions (n, players), of 0 and 1."""
        return coalitions.float()[:, self.index]

    def spread(self, values: Tensor) -> Tensor:
        """Return values per cell (B, players) shared out equally to the cell's pixels, (B, H, W): the sum stays."""
        area = torch.bincount(self.index.flatten(), minlength=self.players)
        return (values / area)[:, self.index]


@dataclass(frozen=True)
class CoalitionGame:
    """v(S) = the target's output when only the cells in S are shown, of B images at once."""

    classifier: Classifier
    inputs: Tensor
    targets: Tensor
    cells: Cells
    fill: Tensor
    output: Output
    chunk: int

    @cached_property
    def full(self) -> Tensor:
        """v(all players) = f(x), (B,) float64."""
        return scores(self.classifier, self.inputs, self.targets, self.output)

    @cached_property
    def empty(self) -> Tensor:
        """v(no players) = f(fill), (B,) float64."""
        nothing = self.fill[None].expand(len(self.targets), -1, -1, -1)
        return scores(self.classifier, nothing, self.targets, self.output)

    def values(self, coalitions: Iterable[Tensor]) -> Iterator[Tensor]:
        """Return v of each block of coalitions (n, players), (B, n) float64, masked 64 at a time."""
        for block in coalitions:
            masks = (self.cells.masks(part) for part in torch.split(block, BLOCK))
            predictions = iterate_masked_scores(
                self.classifier,
                self.inputs,
                self.targets,
                masks,
                fill=self.fill,
                output=self.output,
                chunk=self.chunk or None,
            )
            yield torch.cat([values for _, values in predictions], 1).cpu()

    def evaluate_coalitions(self, coalitions: Tensor, progress: Progress) -> Tensor:
        """Return v of all coalitions (m, n), (B, m) float64."""
        payoffs: list[Tensor] = []
        done = 0
        for values in self.values(torch.split(coalitions, BLOCK)):
            payoffs.append(values)
            done += values.shape[1]
            progress(done, len(coalitions), "coalitions")
        return torch.cat(payoffs, 1)


def all_coalitions(players: int) -> Tensor:
    """List every coalition of n players, (2^n, n) bool: player i is in coalition k where bit i of k is set."""
    return (torch.arange(2**players)[:, None] >> torch.arange(players) & 1).bool()
