"""Network dissection: which units of a layer are active where a concept is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from core.errors import ForetellError
from core.types import Progress, silent

TOP = 0.01
"""Share of a unit's activations that count as active (Bau et al. 2020, arXiv:2009.05041; .005 in 2017)."""
DETECTS = 0.04
"""Agreement (IoU) from which a unit is called a detector there."""
SHUFFLES = 19
BLOCK = 16
"""Images whose activation maps are enlarged at a time."""


@dataclass(frozen=True)
class Dissection:
    """Agreement of each unit with each concept.

    Attributes
    ----------
    concepts
        M names.
    agreement
        (K, M) float64: pixels lit and in the concept over pixels lit or in the concept, over all images (IoU).
    threshold
        (K,) float32: the activation above which a unit is lit.
    chance
        (K,) float64: the largest agreement with any concept that each unit reached when the masks were dealt to other
        images, over `SHUFFLES` deals: a unit that agrees no better than that detects nothing (p < .05).
    """

    concepts: tuple[str, ...]
    agreement: Tensor
    threshold: Tensor
    chance: Tensor

    @property
    def best(self) -> tuple[Tensor, Tensor]:
        """The largest agreement of each unit and the index of that concept, (K,) both."""
        best_agreement = self.agreement.max(1)
        return best_agreement.values, best_agreement.indices

    @property
    def detects(self) -> Tensor:
        """(K,) bool: units whose best agreement is `DETECTS` or more, and above chance."""
        return (self.best[0] >= DETECTS) & (self.best[0] > self.chance)


def dissect(
    maps: Tensor,
    masks: Tensor,
    concepts: Sequence[str],
    *,
    top: float = TOP,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
) -> Dissection:
    """Compute the agreement of activation maps (N, K, h, w) with concept masks (N, M, H, W), bool, of the same images.

    Bau et al. 2017 (arXiv:1704.05796), section 2: a unit's threshold is exceeded by the share ``top`` of its
    activations over all images and places; the activation map, enlarged to the masks bilinearly, is lit above it.

    Raises
    ------
    ForetellError
        Other images, other names, or so few places that no activation is in the top share.
    """
    if len(maps) != len(masks) or masks.shape[1] != len(concepts):
        raise ForetellError(
            f"{len(maps)} activation maps, {len(masks)} masks with {masks.shape[1]} concepts for {len(concepts)} "
            "names: give one mask an image and concept, and one name a concept."
        )
    values = maps.float().transpose(0, 1).flatten(1)
    lit = int(top * values.shape[1])
    if lit < 1:
        raise ForetellError(
            f"{values.shape[1]} activations a unit, of which the top {top:.1%} is none: give more images."
        )
    threshold = values.topk(lit + 1).values[:, -1]
    generator = generator or torch.Generator().manual_seed(0)
    deals = [torch.arange(len(maps)), *(torch.randperm(len(maps), generator=generator) for _ in range(SHUFFLES))]
    both = torch.zeros(len(deals), maps.shape[1], len(concepts), dtype=torch.float64)
    alone = torch.zeros(maps.shape[1], dtype=torch.float64)
    for start in range(0, len(maps), BLOCK):
        rows = slice(start, start + BLOCK)
        large = F.interpolate(maps[rows].float(), masks.shape[2:], mode="bilinear", align_corners=False)
        seen = (large > threshold[:, None, None]).float().flatten(2)
        alone += seen.sum((0, 2))
        for k, deal in enumerate(deals):
            both[k] += torch.einsum("nkp,nmp->km", seen, masks[deal[rows]].float().flatten(2))
        progress(min(start + BLOCK, len(maps)), len(maps), "comparing units with masks")
    area = masks.double().sum((0, 2, 3))
    agreement = both / (alone[:, None] + area - both).clamp(min=1)
    return Dissection(tuple(concepts), agreement[0], threshold, agreement[1:].amax((0, 2)))
