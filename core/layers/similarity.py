"""Similarity of two layers: canonical correlations of their outputs for the same images."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from core.errors import ForetellError

SHARE = 0.99
"""Share of the variance kept before the correlations: the rest is taken for noise."""
SHUFFLES = 20


@dataclass(frozen=True)
class Similarity:
    """Similarity of two layers, whatever their axes.

    Attributes
    ----------
    correlations
        (d,) float64, the canonical correlations, falling; d is the smaller number of kept directions.
    kept
        How many directions of each layer hold `SHARE` of its variance.
    chance, chance_error
        Mean correlation of the same layers when the images of one are shuffled, over `SHUFFLES` shuffles, and its
        standard deviation: with few images anything correlates.
    """

    correlations: Tensor
    kept: tuple[int, int]
    chance: float
    chance_error: float

    @property
    def mean(self) -> float:
        """Mean of `correlations`: the SVCCA similarity, 1 for layers that span the same."""
        return float(self.correlations.mean())


def svcca(one: Tensor, other: Tensor, *, share: float = SHARE, generator: torch.Generator | None = None) -> Similarity:
    """Compute the SVCCA of two layers' outputs (N, D) and (N, E) for the same N images.

    Raghu et al. 2017 (arXiv:1706.05806), section 2. Each row is an image (or a place of one); only the directions
    that hold ``share`` of a layer's variance are compared.

    Raises
    ------
    ForetellError
        Different images, a layer that says the same of all, or so few images that everything correlates.
    """
    if len(one) != len(other):
        raise ForetellError(f"{len(one)} and {len(other)} rows: both layers must come from the same images.")
    bases = [_directions(layer, share) for layer in (one, other)]
    kept = bases[0].shape[1], bases[1].shape[1]
    if sum(kept) >= len(one):
        raise ForetellError(
            f"{len(one)} rows for {kept[0]} and {kept[1]} directions: everything correlates. Give more images than "
            "directions of both together, at best five times as many."
        )
    generator = generator or torch.Generator().manual_seed(0)
    shuffled = [bases[1][torch.randperm(len(other), generator=generator)] for _ in range(SHUFFLES)]
    chance = torch.stack([_correlations(bases[0], basis).mean() for basis in shuffled])
    return Similarity(_correlations(*bases), kept, float(chance.mean()), float(chance.std()))


def _directions(values: Tensor, share: float) -> Tensor:
    """Return orthonormal columns (N, d): the images along the directions that hold ``share`` of the variance."""
    centred = values.double().flatten(1)
    centred = centred - centred.mean(0)
    left, sizes, _ = torch.linalg.svd(centred, full_matrices=False)
    variance = sizes.square()
    if not variance.sum() > 0:
        raise ForetellError("The layer gives the same output for all these images: choose another layer.")
    known = sizes > sizes[0] * torch.finfo(torch.float64).eps * max(centred.shape)
    enough = int((variance.cumsum(0) < share * variance.sum()).sum()) + 1
    kept: Tensor = left[:, : min(enough, int(known.sum()))]
    return kept


def _correlations(one: Tensor, other: Tensor) -> Tensor:
    """Compute the canonical correlations of orthonormal columns: the singular values of their products."""
    correlations: Tensor = torch.linalg.svdvals(one.T @ other).clamp(max=1)
    return correlations
