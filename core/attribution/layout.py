"""How a layer's output holds the places of the image: as feature maps, channels last, or as a list of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Kind = Literal["maps", "channels_last", "tokens"]
TOKENS, MAPS = 3, 4
"""Axes of outputs (B, N, K), and of outputs (B, K, h, w) or (B, h, w, K)."""
ROUNDED = 2.0
"""Places by which strides and paddings may change the proportions of a layer."""
ALIKE = 0.6
"""Least correlation of measured and expected halves: above .9 in vision transformers, below .3 in a random order."""
EXTRA = 32
"""Most tokens besides those of places: class, distillation and register tokens."""


@dataclass(frozen=True)
class Layout:
    """Where the places of the image are in a layer's output.

    Attributes
    ----------
    kind
        Outputs are (B, K, h, w), (B, h, w, K) or (B, N, K).
    grid
        (h, w).
    prefix, suffix
        Of tokens: how many lie before the places, row by row, and how many behind.
    """

    kind: Kind
    grid: tuple[int, int]
    prefix: int = 0
    suffix: int = 0

    def to_maps(self, output: Tensor) -> Tensor:
        """Return the places of an output as feature maps (B, K, h, w): a view."""
        if self.kind == "maps":
            return output
        if self.kind == "channels_last":
            return output.movedim(-1, 1)
        places = self.select_places(output).transpose(1, 2)
        return places.view(*places.shape[:2], *self.grid)

    def select_places(self, tokens: Tensor) -> Tensor:
        """Return the tokens (B, h w, ...) that are places of tokens (B, N, ...)."""
        return tokens[:, self.prefix : tokens.shape[1] - self.suffix]

    @property
    def tokens(self) -> int:
        """Number of tokens, those that are no places included."""
        return self.prefix + self.grid[0] * self.grid[1] + self.suffix

    @property
    def channel_axis(self) -> int:
        """The axis of the channels."""
        return 1 if self.kind == "maps" else -1


def list_layouts(shape: torch.Size, size: tuple[int, int]) -> list[Layout]:
    """List the layouts that an output of ``shape`` can have whose places have the proportions of the input's ``size``.

    Only outputs of one image with more than one place have any.
    """
    if len(shape) == MAPS:
        grids: list[tuple[Kind, tuple[int, int]]] = [
            ("maps", (shape[2], shape[3])),
            ("channels_last", (shape[1], shape[2])),
        ]
        return [Layout(kind, grid) for kind, grid in grids if grid != (1, 1) and is_in_proportion(grid, size)]
    if len(shape) == TOKENS:
        return [
            Layout("tokens", grid, *ends)
            for others in range(min(EXTRA, shape[1] // 2) + 1)
            for grid in _factor(shape[1] - others)
            if grid != (1, 1) and is_in_proportion(grid, size)
            for ends in dict.fromkeys([(others, 0), (0, others)])
        ]
    return []


def _factor(count: int) -> list[tuple[int, int]]:
    return [(h, count // h) for h in range(1, count + 1) if count % h == 0]


def is_in_proportion(grid: tuple[int, int], size: tuple[int, int]) -> bool:
    """Tell whether h and w have the proportions of the input, up to strides and paddings."""
    return abs(grid[0] - grid[1] * size[0] / size[1]) <= ROUNDED


def best_token_layout(layouts: list[Layout], upper: Tensor, left: Tensor) -> Layout | None:
    """Return the layout of tokens whose halves are most like the measured ones; None if none is like them.

    ``upper`` (N,) says of each token how much more it changes with the upper than with the lower half of the input,
    ``left`` the same of its sides: of the right layout they change sign in the middle.
    """
    likeness = {
        layout: min(float(_correlate(*pair)) for pair in zip((upper, left), _halves(layout), strict=True))
        for layout in layouts
    }
    best = max(layouts, key=lambda layout: likeness[layout])
    return best if likeness[best] > ALIKE else None


def _halves(layout: Layout) -> tuple[Tensor, Tensor]:
    """Return 1 for tokens of the first half, -1 for those of the second, 0 for all others: upper and left, (N,)."""
    sides = [torch.linspace(1, -1, side).sign() if side > 1 else torch.zeros(1) for side in layout.grid]
    grids = torch.meshgrid(*sides, indexing="ij")
    upper, left = (torch.nn.functional.pad(one.flatten(), (layout.prefix, layout.suffix)) for one in grids)
    return upper.double(), left.double()


def _correlate(one: Tensor, other: Tensor) -> Tensor:
    one, other = one - one.mean(), other - other.mean()
    product: Tensor = (one * other).sum() / (one.norm() * other.norm()).clamp(min=torch.finfo(torch.float64).tiny)
    return product
