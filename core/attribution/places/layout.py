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
UNROLLED = 3
"""Most times that tokens are unrolled: Hiera's four stages pool three times."""


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
    unrolled
        Of tokens: how often they were unrolled, which lists the four places of each square of 2 x 2 one square after
        the other's, so that pooling is a maximum over quarters of the list (Hiera, arXiv:2306.00989). 0 is row by row.
    """

    kind: Kind
    grid: tuple[int, int]
    prefix: int = 0
    suffix: int = 0
    unrolled: int = 0

    def to_maps(self, output: Tensor) -> Tensor:
        """Return the places of an output as feature maps (B, K, h, w): a view, except of unrolled tokens."""
        if self.kind == "maps":
            return output
        if self.kind == "channels_last":
            return output.movedim(-1, 1)
        places = self.select_places(output).transpose(1, 2)
        return places.reshape(*places.shape[:2], *self.grid)

    def select_places(self, tokens: Tensor) -> Tensor:
        """Return the tokens (B, h w, ...) that are places of tokens (B, N, ...), row by row."""
        if self.unrolled:
            return tokens[:, self.order.to(tokens.device)]
        return tokens[:, self.prefix : tokens.shape[1] - self.suffix]

    @property
    def order(self) -> Tensor:
        """The number of the token of each place, (h w,), row by row."""
        (h, w), times = self.grid, self.unrolled
        numbers = torch.arange(h * w).view(*[2] * (2 * times), h >> times, w >> times)
        rows, columns = ([2 * times + axis, *range(2 * times - 2 + axis, -1, -2)] for axis in (0, 1))
        return self.prefix + numbers.permute(*rows, *columns).flatten()

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
        ] + [
            Layout("tokens", grid, unrolled=times)
            for times in range(1, UNROLLED + 1)
            for grid in _factor(shape[1])
            if is_in_proportion(grid, size) and not any(side % 2**times for side in grid)
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
    likeness = {layout: min(map(correlate, (upper, left), _halves(layout))) for layout in layouts}
    best = max(layouts, key=lambda layout: likeness[layout])
    return best if likeness[best] > ALIKE else None


def _halves(layout: Layout) -> tuple[Tensor, Tensor]:
    """Return 1 for tokens of the first half, -1 for those of the second, 0 for all others: upper and left, (N,)."""
    sides = [torch.linspace(1, -1, side).sign() if side > 1 else torch.zeros(1) for side in layout.grid]
    return _list_signs(layout, sides[0], 0), _list_signs(layout, sides[1], 1)


def list_stripes(layout: Layout, width: int, axis: int) -> Tensor:
    """Return 1 for tokens of every other stripe of ``width`` rows (axis 0) or columns, -1 for others: (N,)."""
    return _list_signs(layout, 1.0 - 2 * (torch.arange(layout.grid[axis]) // width % 2), axis)


def _list_signs(layout: Layout, signs: Tensor, axis: int) -> Tensor:
    """Return of each token the sign of its row (axis 0) or column, 0 for those that are no places: (N,) float64."""
    values = torch.zeros(layout.tokens, dtype=torch.float64)
    values[layout.order] = (signs[:, None] if axis == 0 else signs).expand(layout.grid).flatten().double()
    return values


def correlate(one: Tensor, other: Tensor) -> float:
    """Compute Pearson's correlation; 0 where one of both is constant."""
    one, other = one - one.mean(), other - other.mean()
    return float((one * other).sum() / (one.norm() * other.norm()).clamp(min=torch.finfo(torch.float64).tiny))
