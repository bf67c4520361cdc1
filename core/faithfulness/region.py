"""Replace a region of one image and predict again, next to the same region replaced elsewhere.

A replaced region is no natural image, and any change of the prediction may be due to that alone. The same shape at
random other places of the same image shows how much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from core.attribution.baselines import Baseline, baselines
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import stream
from core.types import Progress, silent

ELSEWHERE = 20


@dataclass(frozen=True)
class RegionEffect:
    """Predictions with and without a region.

    Attributes
    ----------
    share
        Share of the image in the region, from 0 to 1.
    before, after
        Probabilities (K,) of the image, and with the region replaced.
    elsewhere
        Probabilities (R, K) with the same shape replaced at R random places, cut off by no edge: what leaves the
        image on one side enters it on the other.
    replaced
        The input (C, H, W) with the region replaced.
    """

    share: float
    before: Tensor
    after: Tensor
    elsewhere: Tensor
    replaced: Tensor


def replace_region(
    classifier: Classifier,
    inputs: Tensor,
    region: Tensor,
    *,
    substrate: Baseline = "blur",
    places: int = ELSEWHERE,
    seed: int = 0,
    progress: Progress = silent,
) -> RegionEffect:
    """Predict an input (C, H, W) with a region (H, W) of it replaced, and with the same shape replaced elsewhere.

    Raises
    ------
    ForetellError
        The region is empty or has another size than the input.
    """
    if region.shape != inputs.shape[1:]:
        raise ForetellError(f"The region is {tuple(region.shape)} pixels, the input {tuple(inputs.shape[1:])}.")
    share = float(region.float().mean())
    if share == 0:
        raise ForetellError("The region is empty: mark at least one pixel.")
    fill = baselines(classifier, inputs[None], substrate, seed)[0]
    regions = [torch.zeros_like(region), region, *_move(region, places, seed)]
    masked = torch.stack([torch.where(one, fill, inputs) for one in regions])
    probabilities = classifier.probabilities(masked, progress=progress)
    return RegionEffect(share, probabilities[0], probabilities[1], probabilities[2:], masked[1])


def _move(region: Tensor, places: int, seed: int) -> Iterator[Tensor]:
    """Move the region around the image, `places` times, never by nothing."""
    height, width = region.shape
    generator = stream(seed, 1)
    for step in (1 + torch.randint(height * width - 1, (places,), generator=generator)).tolist():
        yield region.roll((step // width, step % width), dims=(0, 1))
