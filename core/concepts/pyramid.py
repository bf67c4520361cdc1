"""Spatial pyramids: how often each visual word occurs in ever smaller cells of an image.

Lazebnik, Schmid & Ponce 2006, Beyond bags of features: spatial pyramid matching for recognizing natural scene
categories (CVPR). A visual word is the nearest of some typical descriptors of patches, as in a codebook of SIFT. Here a
descriptor has the layout of SIFT, of feature maps in place of directions of edges (Zeiler, Taylor & Fergus 2011, ICCV).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.cluster.vq import kmeans2
from torch import Tensor
from torch.nn.functional import avg_pool2d, one_hot, unfold

from core.errors import ForetellError
from core.types import Progress, silent

Maps = Callable[[int], Tensor]
"""``maps(b)``: feature maps (M, K, H, W) of image b, whose M pyramids are averaged."""
PATCH, STEP = 8, 2
"""Side of a patch with one descriptor, and the distance of the next one, in places of the feature maps."""
PARTS = 2
"""Quarters of a patch that are described one by one: 2 along each side."""
EACH_WORD = 5
"""Descriptors that a visual word needs, on average, to be learned from."""
SAMPLED = 5000
"""Descriptors, about, from which the visual words are learned."""


@dataclass(frozen=True)
class VisualWords:
    """Typical descriptors: ``centres`` (W, D), of descriptors that were scaled with the length ``typical``."""

    centres: Tensor
    typical: float


def describe_patches(maps: Tensor) -> Tensor:
    """Describe the patches of feature maps (B, K, H, W): (B, 8 K, h, w), at every `STEP` places.

    A descriptor has, of each quarter of its patch, the mean of the positive and of the negative activations.
    """
    signed = torch.cat([maps.clamp(min=0), (-maps).clamp(min=0)], 1)
    height, width = (extent - PATCH + 1 for extent in maps.shape[2:])
    if height < 1 or width < 1:
        raise ForetellError(f"Feature maps of {maps.shape[2]} x {maps.shape[3]} places are smaller than a patch of 8.")
    side = PATCH // PARTS
    quarters = unfold(avg_pool2d(signed, side, stride=1), PARTS, dilation=side, stride=STEP)
    described: Tensor = quarters.view(len(maps), -1, -(-height // STEP), -(-width // STEP))
    return described


def list_descriptors(described: Tensor) -> Tensor:
    """List the descriptors (N, D) of patches (B, D, h, w) that are not empty."""
    listed = described.permute(0, 2, 3, 1).flatten(0, 2)
    return listed[listed.any(1)]


def learn_words(descriptors: Tensor, count: int, seed: int) -> VisualWords:
    """Learn at most ``count`` visual words from descriptors (N, D), by k-means.

    Descriptors are scaled to length 1; those shorter than the average keep their proportion to it, so that a patch with
    little contrast does not look like one with much.

    Raises
    ------
    ForetellError
        There are none.
    """
    if not len(descriptors):
        raise ForetellError("No patch of the images has an activation: there are no visual words to learn.")
    typical = float(descriptors.norm(dim=1).mean())
    scaled = _scale(descriptors, typical)
    words = max(1, min(count, len(scaled) // EACH_WORD))
    centres, _ = kmeans2(scaled.double().numpy(), words, minit="++", rng=np.random.default_rng(seed))
    return VisualWords(torch.from_numpy(centres).to(descriptors.dtype), typical)


def _scale(descriptors: Tensor, typical: float) -> Tensor:
    scaled: Tensor = descriptors / descriptors.norm(dim=1, keepdim=True).clamp(min=typical)
    return scaled


def find_words(described: Tensor, words: VisualWords) -> Tensor:
    """Find the nearest word of each patch (B, D, h, w): (B, W, h, w) of 0 and 1, all 0 where a patch is empty."""
    b, _, h, w = described.shape
    listed = described.permute(0, 2, 3, 1).flatten(0, 2)
    nearest = torch.cdist(_scale(listed, words.typical), words.centres).argmin(1)
    words_at = one_hot(nearest, len(words.centres)).to(described.dtype) * listed.any(1)[:, None]
    laid_out: Tensor = words_at.view(b, h, w, -1).permute(0, 3, 1, 2)
    return laid_out


def pool_pyramid(words_at: Tensor, levels: int) -> Tensor:
    """Pool words (B, W, h, w) in 1 x 1, 2 x 2, 4 x 4, ... cells: weighted histograms (B, W (1 + 4 + 16 + ...)).

    Lazebnik et al. 2006, eq. 3: a match in a cell of level l of L counts 1 / 2^(L - l + 1), on level 0 1 / 2^L. The
    histograms are divided by the number of words in the image, so that an image matches itself by 1.
    """
    pooled, last = [], levels - 1
    total = words_at.sum((1, 2, 3)).clamp(min=1)[:, None]
    for level in range(levels):
        weight = 2.0 ** -(last - level + 1) if level else 2.0**-last
        pooled.append(weight * _sum_cells(words_at, 2**level).flatten(1) / total)
    return torch.cat(pooled, 1)


def _sum_cells(words_at: Tensor, side: int) -> Tensor:
    """Sum over the cells of a grid: (B, W, side, side); a place belongs to the cell in which its start is."""
    down, across = (
        one_hot(torch.arange(extent) * side // extent, side).to(words_at.dtype) for extent in words_at.shape[2:]
    )
    return torch.einsum("bkhw,hi,wj->bkij", words_at, down, across)


def intersect_histograms(one: Tensor, other: Tensor) -> Tensor:
    """Sum the smaller of each two entries of histograms (N, D) and (M, D): the intersection kernel (N, M)."""
    return torch.stack([torch.minimum(row, other).sum(1) for row in one])


def build_pyramids(
    maps: Maps,
    count: int,
    training: int,
    *,
    words: int,
    levels: int,
    generator: torch.Generator,
    progress: Progress = silent,
) -> Tensor:
    """Build the pyramids (N, D) of ``count`` images, with visual words of the first ``training`` ones."""
    each, sampled = -(-SAMPLED // training), []
    for b in range(training):
        listed = list_descriptors(describe_patches(maps(b)))
        sampled.append(listed[torch.randperm(len(listed), generator=generator)[:each]])
        progress(b + 1, training + count, "learning visual words")
    seed = int(torch.randint(2**31, (1,), generator=generator))
    learned, pyramids = learn_words(torch.cat(sampled), words, seed), []
    for b in range(count):
        pyramids.append(pool_pyramid(find_words(describe_patches(maps(b)), learned), levels).mean(0))
        progress(training + b + 1, training + count, "counting visual words")
    return torch.stack(pyramids)


def select_whole(pyramids: Tensor, levels: int) -> Tensor:
    """Select the histograms (N, W) of whole images from pyramids (N, D), with the weight 1."""
    words = pyramids.shape[1] * 3 // (4**levels - 1)
    return pyramids[:, :words] * 2.0 ** (levels - 1)
