"""The built-in network, in the form of a user's own model file: `build`, `transforms`, `CATEGORIES`.

It is small and was trained on scenes whose objects are nearly always in their usual context, so it has learnt the
context as much as the object: shifted scenes fool it, often with confidence. `data.scenes.train` made its weights;
``accuracy.json`` next to them says how well it does and on what.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from data.scenes.pen import SIZE
from data.scenes.shapes import CATEGORIES as TABLE
from data.weights import load_weights

WEIGHTS = Path(__file__).with_name("weights.safetensors")
CATEGORIES = list(TABLE)
MEAN = (0.46, 0.468, 0.432)
"""Mean colour of the training scenes, RGB in [0, 1]: input 0 is this colour, input -MEAN/STD is black."""
MEAN_COLOUR = tuple(round(255 * value) for value in MEAN)
"""The neutral fill of masked-out parts, RGB in 0..255."""
STD = (0.235, 0.212, 0.245)

WIDTHS = ((3, 24, 2), (24, 48, 2), (48, 64, 1), (64, 96, 2), (96, 112, 1), (112, 128, 2))
"""Input channels, output channels, stride of each convolution."""


class SceneNet(nn.Module):
    """Six 3 x 3 convolutions with batch norm, global average pooling, one linear layer; 0.32 M parameters."""

    def __init__(self, classes: int = len(CATEGORIES)) -> None:
        super().__init__()
        blocks = [_block(inside, outside, stride) for inside, outside, stride in WIDTHS]
        self.features = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.head = nn.Linear(WIDTHS[-1][1], classes)

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (B, classes) of normalised inputs (B, 3, 96, 96)."""
        logits: Tensor = self.head(self.flatten(self.pool(self.features(x))))
        return logits


def build() -> nn.Module:
    """Return the trained network: eval mode, no gradients for its weights.

    Raises
    ------
    DataError
        The weights are missing.
    """
    return load_weights(SceneNet(), WEIGHTS, "data.scenes.train")


def transforms(image: Image.Image) -> Tensor:
    """Transform an image to (3, 96, 96) float32, normalised by `MEAN` and `STD`; other sizes are resized."""
    return normalise(read_pixels(image))[0]


def read_pixels(image: Image.Image) -> Tensor:
    """Return the pixels (1, 3, 96, 96) uint8 of an image, resized if it has another size."""
    image = image.convert("RGB")
    if image.size != (SIZE, SIZE):
        image = image.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)[None]


def normalise(pixels: Tensor) -> Tensor:
    """Normalise (B, 3, H, W) uint8 to float32 of mean about 0 and standard deviation about 1."""
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
    return ((pixels.float() / 255 - mean) / std).contiguous()


def _block(inside: int, outside: int, stride: int) -> nn.Sequential:
    convolution = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outside), nn.ReLU())
