"""Pointing game and relevance mass: compare a heatmap with a mask of where the evidence is known to be.

Relevance mass and rank: Arras, Osman & Samek 2022 (arXiv:2003.07258), section 3.3. Pointing game: Zhang et al. 2016
(arXiv:1608.00507), section 4.2.
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.errors import ForetellError
from core.faithfulness.ranking import finite, ranks


def relevance_mass(maps: Tensor, inside: Tensor) -> Tensor:
    """Compute the share of positive evidence inside the mask (relevance mass accuracy), (B,) float64 in [0, 1].

    ``maps`` (B, H, W) have their zero at 0 (`Explanation.evidence`): what exceeds it counts. ``inside`` (B, H, W) is
    bool. NaN for a heatmap without positive evidence, which has no share anywhere.

    Raises
    ------
    ForetellError
        Masks that do not fit, are not bool or are empty; heatmaps that are not finite.
    """
    evidence = _fitting(maps, inside).double().clamp_min(0).flatten(1)
    return (evidence * inside.flatten(1)).sum(1) / evidence.sum(1)


def relevance_rank(maps: Tensor, inside: Tensor) -> Tensor:
    """Compute the share of the k highest-valued pixels inside a mask of k pixels, (B,) float64 in [0, 1].

    Heatmaps (B, H, W), ``inside`` (B, H, W) bool. Equal values rank row by row from the top left. Errors are those of
    `relevance_mass`.
    """
    size = inside.flatten(1).sum(1)
    top = ranks(_fitting(maps, inside)) < size[:, None, None]
    return (top & inside).flatten(1).sum(1).double() / size


def pointing_hit(maps: Tensor, inside: Tensor, *, tolerance: float = 15.0) -> Tensor:
    """Tell whether the heatmap's maximum is at most ``tolerance`` px from the mask (pointing game), (B,) bool.

    Heatmaps (B, H, W), ``inside`` (B, H, W) bool. Of equal maxima the first counts, row by row from the top left. 15 px
    is TorchRay's tolerance, for photographs in their own size: choose less for smaller images. Errors are those of
    `relevance_mass`.
    """
    if not tolerance >= 0:
        raise ForetellError(f"tolerance={tolerance}: give a distance of 0 px or more.")
    top = ranks(_fitting(maps, inside)) == 0
    nearest = [_distance(point, mask) for point, mask in zip(top, inside, strict=True)]
    return torch.tensor([distance <= tolerance for distance in nearest], dtype=torch.bool)


def _distance(point: Tensor, mask: Tensor) -> float:
    """Compute the distance in px of the one pixel of ``point`` from the nearest of ``mask``."""
    between = mask.nonzero() - point.nonzero()
    return float(between.double().square().sum(1).min().sqrt())


def _fitting(maps: Tensor, inside: Tensor) -> Tensor:
    if inside.dtype != torch.bool or inside.shape != maps.shape:
        raise ForetellError(
            f"Masks {tuple(inside.shape)} of {inside.dtype} do not fit heatmaps {tuple(maps.shape)}: "
            "give one bool mask (H, W) per heatmap."
        )
    for index, mask in enumerate(inside):
        if not bool(mask.any()):
            raise ForetellError(f"Mask {index} is empty: leave out images in which the object is not visible.")
    return finite(maps)
