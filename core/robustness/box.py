"""The inputs an image may be changed to: each value within a share of the range of pixels, and still a pixel."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier


@dataclass(frozen=True)
class Box:
    """Bounds (B, C, H, W) around images, and the size (C, H, W) of the whole range from black to white."""

    low: Tensor
    high: Tensor
    scale: Tensor

    def clamp(self, inputs: Tensor) -> Tensor:
        """Return the nearest inputs inside."""
        return inputs.clamp(self.low, self.high)

    def sample(self, generator: torch.Generator) -> Tensor:
        """Return uniform draws (B, C, H, W) from the box, one for each image."""
        return self.low + torch.rand(self.low.shape, generator=generator) * (self.high - self.low)


def around(classifier: Classifier, images: Tensor, radius: float, *, pixels: bool = True) -> Box:
    """Return the box of ``radius`` (a share of the range) around images (B, C, H, W), within what pixels can be.

    ``pixels=False`` leaves out the last condition: for networks whose inputs are no images.
    """
    if not 0 < radius <= 1:
        raise ForetellError(
            f"radius={radius} is not a share of the range from black to white: choose more than 0, to 1."
        )
    least, most = find_pixel_range(classifier)
    scale = most - least if pixels else torch.ones_like(least)
    low, high = images - radius * scale, images + radius * scale
    if pixels:
        low, high = low.maximum(least), high.minimum(most)
    return Box(low, high, scale)


def find_pixel_range(classifier: Classifier) -> tuple[Tensor, Tensor]:
    """Return the least and the largest input (C, H, W) that pixels can be, between black and white."""
    ends = classifier.black_and_white
    return torch.minimum(*ends), torch.maximum(*ends)
