"""Frequency bands: a network's accuracy when only low or only high frequencies of an image are left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.types import Progress, silent


@dataclass(frozen=True)
class ByRadius:
    """Accuracy (R,) on the low and on the high frequencies of the same images, for each of R radii."""

    radii: tuple[float, ...]
    low: Tensor
    high: Tensor
    whole: float


def components(images: Tensor, radius: float) -> tuple[Tensor, Tensor]:
    """Return parts (B, C, H, W) with frequencies up to ``radius`` cycles per image, and above; together the images.

    Wang et al. 2019 (arXiv:1905.13545), section 3.1: a disc in the centred spectrum of each channel.
    """
    height, width = images.shape[-2:]
    down = torch.fft.fftfreq(height, 1 / height)[:, None]
    across = torch.fft.fftfreq(width, 1 / width)[None]
    inside = down.square() + across.square() <= radius**2
    low = torch.fft.ifft2(torch.fft.fft2(images.double()) * inside).real.to(images.dtype)
    return low, images - low


def accuracy_by_radius(
    classifier: Classifier,
    images: Tensor,
    labels: Sequence[int],
    radii: Sequence[float],
    *,
    progress: Progress = silent,
) -> ByRadius:
    """Measure accuracy on either part of images (B, C, H, W), for each radius."""
    if len(labels) != len(images) or not len(images):
        raise ForetellError(f"{len(images)} images but {len(labels)} labels: give one label per image.")
    truth = torch.tensor(list(labels))

    def accuracy(inputs: Tensor) -> float:
        return float((classifier.logits(inputs).argmax(1) == truth).double().mean())

    accuracies = []
    for k, radius in enumerate(radii):
        accuracies.append([accuracy(part) for part in components(images, radius)])
        progress(k + 1, len(radii), "predicting low and high frequencies")
    low, high = torch.tensor(accuracies, dtype=torch.float64).view(-1, 2).unbind(1)
    return ByRadius(tuple(radii), low, high, accuracy(images))
