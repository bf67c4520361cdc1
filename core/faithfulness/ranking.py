"""The order of a heatmap's pixels, and what a heatmap must be to have one."""

from __future__ import annotations

import torch
from torch import Tensor

from core.errors import ForetellError


def finite(maps: Tensor) -> Tensor:
    """Return heatmaps (B, H, W) unchanged, or raise an error."""
    if maps.ndim != 3:
        raise ForetellError(f"A measure takes heatmaps (B, H, W), not {tuple(maps.shape)}: give one heatmap per image.")
    for index, one in enumerate(maps):
        if not bool(torch.isfinite(one).all()):
            raise ForetellError(f"Heatmap {index} has NaN or infinite values: compute it again before measuring it.")
    return maps.detach().cpu()


def fitting(maps: Tensor, inputs: Tensor) -> Tensor:
    """Return heatmaps (B, H, W), finite and one for each of ``inputs`` (B, C, H, W), or raise an error."""
    if maps.shape != inputs[:, 0].shape:
        raise ForetellError(
            f"Heatmaps {tuple(maps.shape)} do not fit images {tuple(inputs.shape)}: give one heatmap (H, W) per image."
        )
    return finite(maps)


def ranks(maps: Tensor) -> Tensor:
    """Rank (B, H, W) int64 of each pixel by decreasing value of its heatmap, 0 for the largest.

    Equal values keep the order of reading (row by row, from the top left), so that a heatmap with ties, as a coarse or
    clipped one, has one order; what it is worth there is a property of the image, not of the heatmap.
    """
    flat = finite(maps).flatten(1)
    return flat.argsort(dim=1, descending=True, stable=True).argsort(dim=1).view_as(maps)
