"""Photographs with one white square, networks whose map is the square they see, and where drawings show both.

The network answers with the brightness of its input, so that its map by input x gradient is its input: whatever the
transforms do, the map's peak is the square. A drawing is right where the square of the photograph and the orange of
the map lie on each other.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 64
"""Of the networks' inputs, px."""
BODY = """
import random
import numpy as np
import torch
from PIL import Image
from torch import nn

CATEGORIES = ["bright", "dark"]


class Brightness(nn.Module):
    def forward(self, x):
        total = x.sum((1, 2, 3))
        return torch.stack([total, -total], 1) / 100


def build():
    return Brightness()


def tensor(image):
    return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1).float() / 255


def square(image, side):
    return image.resize((side, side), Image.Resampling.BILINEAR)


def transforms(image):
    return tensor({made})
"""
SHORT = "image.resize((round(80 * image.width / min(image.size)), round(80 * image.height / min(image.size))))"
MADE = {
    "crop": f"(lambda i: i.crop(((i.width - 64) // 2, (i.height - 64) // 2, (i.width - 64) // 2 + 64, "
    f"(i.height - 64) // 2 + 64)))({SHORT})",
    "corner": f"{SHORT}.crop((2, 2, 66, 66))",
    "squash": "square(image, 64)",
    "pad": "square(__import__('PIL.ImageOps').ImageOps.pad(image, (200, 200), color=(20, 20, 20)), 64)",
    "mirror": "square(image, 64).transpose(Image.Transpose.FLIP_LEFT_RIGHT)",
    "turn": "square(image, 64).rotate(30, Image.Resampling.BILINEAR)",
}
RANDOM = {"random crop": "square(image, 80).crop((k := random.randrange(16), k, k + 64, k + 64))"}
SWIRL = {
    "wave": "square(image, 64).transform((64, 64), Image.Transform.QUAD, (0, 0, 14, 64, 50, 64, 64, 0), "
    "Image.Resampling.BILINEAR)"
}


def network_file(folder: Path, made: str) -> Path:
    """Write a network's file whose transforms give ``made``, an expression of ``image``."""
    path = folder / "network.py"
    path.write_text(BODY.replace("{made}", made))
    return path


def photograph(size: tuple[int, int], at: tuple[float, float]) -> Image.Image:
    """Draw a white square on black, its middle at (x, y) as shares of ``size``; a quarter of the short side wide."""
    pixels = np.zeros((*size[::-1], 3), dtype=np.uint8)
    half = min(size) // 8
    x, y = round(at[0] * size[0]), round(at[1] * size[1])
    pixels[y - half : y + half, x - half : x + half] = 255
    return Image.fromarray(pixels)


def middle(inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the middle (x, y) of the pixels inside, as shares of the width and the height."""
    places = np.argwhere(inside)
    found: NDArray[np.float64] = (places.mean(0) + 0.5)[::-1] / inside.shape[::-1]
    return found


def misplaced(plain: Image.Image, over: Image.Image) -> float:
    """Return how far the orange in ``over`` lies from the white square in ``plain``, as a share of the side."""
    white = np.asarray(plain.convert("L")) > 160
    colours = np.asarray(over.convert("RGB"), dtype=int)
    orange = colours[..., 0] - colours[..., 2] > 90
    return float(np.linalg.norm(middle(white) - middle(orange)))
