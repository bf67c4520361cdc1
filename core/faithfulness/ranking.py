"""The order of a map's pixels, and what a map must be to have one."""

from __future__ import annotations

import torch
from torch import Tensor

from core.errors import ForetellError


def finite(maps: Tensor) -> Tensor:
    """Maps (B, H, W) as they are, or the sentence that says what is wrong."""
    if maps.ndim != 3:
        raise ForetellError(f"A measure takes maps (B, H, W), not {tuple(maps.shape)}: give one map per picture.")
    for index, one in enumerate(maps):
        if not bool(torch.isfinite(one).all()):
            raise ForetellError(f"Map {index} has NaN or infinite values: make it again before measuring it.")
    return maps.detach().cpu()


def fitting(maps: Tensor, inputs: Tensor) -> Tensor:
    """Maps (B, H, W), finite and one for each of ``inputs`` (B, C, H, W), or the sentence that says what is wrong."""
    if maps.shape != inputs[:, 0].shape:
        raise ForetellError(
            f"Maps {tuple(maps.shape)} do not fit pictures {tuple(inputs.shape)}: give one map (H, W) per picture."
        )
    return finite(maps)


def ranks(maps: Tensor) -> Tensor:
    """Rank (B, H, W) int64 of each pixel by decreasing value of its map, 0 for the largest.

    Equal values keep the order of reading (row by row, from the top left), so that a map with ties, as a coarse or
    clipped one, has one order; what it is worth there is a property of the picture, not of the map.
    """
    flat = finite(maps).flatten(1)
    return flat.argsort(dim=1, descending=True, stable=True).argsort(dim=1).view_as(maps)
