"""Near-duplicates: the same photograph twice, re-encoded, rescaled, brightened or cut by a margin."""

from __future__ import annotations

import torch
from torch import Tensor

GRID = 16
SAME = 0.9
"""Correlation of two sketches from which on two images count as one (docs/decisions/0018-which-examples.md)."""


def sketches(inputs: Tensor) -> Tensor:
    """Sketch images by what survives re-encoding: steps of brightness between neighbours on a coarse grid.

    Parameters
    ----------
    inputs
        The network's inputs (B, C, H, W).

    Returns
    -------
    Tensor
        (B, 2 * 16 * 15) float32 of length 1; zeros for an image of one colour.
    """
    grid = torch.nn.functional.adaptive_avg_pool2d(inputs.float().mean(1, keepdim=True), GRID)[:, 0]
    steps = torch.cat([grid.diff(dim=2).flatten(1), grid.diff(dim=1).flatten(1)], 1)
    sketch: Tensor = steps / steps.norm(dim=1, keepdim=True).clamp(min=1e-6)
    return sketch


def repeats(vectors: Tensor) -> dict[int, int]:
    """Find each image that repeats an earlier one by its sketch (N, d): its index and that of the one kept."""
    alike = vectors @ vectors.T >= SAME
    left_out: dict[int, int] = {}
    for later, earlier in torch.nonzero(alike.tril(-1)).tolist():
        if earlier not in left_out:
            left_out.setdefault(later, earlier)
    return left_out
