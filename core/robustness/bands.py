"""Margins by frequency: how far it is to another prediction if only one band of frequencies may change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from scipy.fft import dct
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.robustness.boundary import margins_within
from core.types import Progress, silent


@dataclass(frozen=True)
class DctBand:
    """A block on the diagonal of the discrete cosine transform (DCT) of an image.

    Attributes
    ----------
    low, high
        Its frequencies across, in cycles per image; ``high`` is not in it. Down, it has the same share of all.
    dimension
        The number of directions in it, over all channels.
    project
        Projects a change (C * H * W,) float64 of the input to the band.
    """

    low: float
    high: float
    dimension: int
    project: Callable[[Tensor], Tensor]


def dct_bands(shape: tuple[int, int, int], bands: int) -> list[DctBand]:
    """Cut the diagonal of the DCT of inputs (C, H, W) into bands, from coarse to fine.

    Ortiz-Jimenez et al. 2020 (arXiv:2002.06349), section 3.2: the subspaces are orthogonal to each other, of about the
    same dimension, and have the same frequencies down as across. The waves of index u have u / 2 cycles per image.

    Raises
    ------
    ForetellError
        Fewer than one band, or more than the image has rows or columns.
    """
    channels, height, width = shape
    if not 1 <= bands <= min(height, width):
        raise ForetellError(f"bands={bands}: give 1 to {min(height, width)}, the smaller side of the network's input.")
    rows, columns = (np.linspace(0, side, bands + 1).round().astype(int) for side in (height, width))
    waves = [torch.from_numpy(dct(np.eye(side), axis=0, norm="ortho")) for side in (height, width)]
    parts = []
    for k in range(bands):
        down, across = waves[0][rows[k] : rows[k + 1]], waves[1][columns[k] : columns[k + 1]]
        project = partial(_project, shape, down.T @ down, across.T @ across)
        dimension = channels * len(down) * len(across)
        parts.append(DctBand(columns[k] / 2, columns[k + 1] / 2, dimension, project))
    return parts


def _project(shape: tuple[int, int, int], down: Tensor, across: Tensor, change: Tensor) -> Tensor:
    return (down @ change.view(shape) @ across).flatten()


def band_margins(
    classifier: Classifier,
    images: Tensor,
    bands: int = 8,
    *,
    candidates: int = 10,
    steps: int = 50,
    progress: Progress = silent,
) -> Tensor:
    """Measure the L2 distance (B, bands) of images (B, C, H, W) to another class within each band of `dct_bands`.

    Each is found as in `core.robustness.boundary.margins`: an upper bound, infinite where no other class is met in
    ``steps`` steps, in the unit of the network's input. A small margin in a band says that the network's decisions
    depend on these frequencies.
    """
    cut = dct_bands((images.shape[1], images.shape[2], images.shape[3]), bands)
    margins = []
    for k, band in enumerate(cut):
        margins.append(margins_within(classifier, images, band.project, candidates=candidates, steps=steps))
        progress(k + 1, bands, "walking to the boundary in bands of frequencies")
    return torch.stack(margins, 1)
