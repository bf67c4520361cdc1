"""Inputs of a network as images, and back: for transforms that scale each channel on its own, as nearly all do."""

from __future__ import annotations

import torch
from torch import Tensor

from core.errors import ForetellError
from core.network.classifier import Classifier


def black_and_white(classifier: Classifier) -> tuple[Tensor, Tensor]:
    """Return `Classifier.black_and_white` of a network whose inputs can be shown as images.

    Raises
    ------
    ForetellError
        A network of neither one nor three channels, or whose transforms make black and white the same.
    """
    black, white = classifier.black_and_white
    if len(black) not in (1, 3) or bool((white == black).any()):
        raise ForetellError(
            f"Inputs of {classifier.name} cannot be shown as images: its transforms must give 1 or 3 channels "
            "in which black and white differ."
        )
    return black, white


def convert_to_colours(classifier: Classifier, inputs: Tensor) -> Tensor:
    """Return inputs (B, C, H, W) as colours (B, H, W, 3) uint8; what lies beyond black or white is cut off."""
    black, white = black_and_white(classifier)
    levels = ((inputs.cpu() - black) / (white - black)).clamp(0, 1).mul(255).round().to(torch.uint8)
    return levels.expand(-1, 3, -1, -1).permute(0, 2, 3, 1).contiguous()
