"""Augmented copies of an image, as networks are trained on them: a random part of it, as often mirrored as not."""

from __future__ import annotations

import math

import torch
from torch import Tensor

SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
TRIES = 10


def augment_image(image: Tensor, copies: int, seed: int) -> Tensor:
    """Return ``copies`` of a network's input (C, H, W), each a random part resized to the whole: (copies, C, H, W).

    The recipe of the ImageNet training that Folke et al. 2021 refer to: area 8 to 100 %, aspect 3:4 to 4:3
    (log-uniform), mirrored with probability one half.
    """
    generator = torch.Generator().manual_seed(seed)
    made = []
    for _ in range(copies):
        top, left, height, width = _part(image.shape[1], image.shape[2], generator)
        part = image[None, :, top : top + height, left : left + width]
        whole = torch.nn.functional.interpolate(part, image.shape[1:], mode="bilinear", antialias=True)
        mirrored = bool(torch.rand(1, generator=generator) < 0.5)
        made.append(whole.flip(3) if mirrored else whole)
    return torch.cat(made)


def _part(height: int, width: int, generator: torch.Generator) -> tuple[int, int, int, int]:
    """Return the top, left, height, width of a random part; the whole where none of ten fits."""
    for _ in range(TRIES):
        area, aspect, down, right = torch.rand(4, generator=generator).tolist()
        pixels = height * width * (SCALE[0] + area * (SCALE[1] - SCALE[0]))
        ratio = math.exp(math.log(RATIO[0]) + aspect * (math.log(RATIO[1]) - math.log(RATIO[0])))
        w, h = round(math.sqrt(pixels * ratio)), round(math.sqrt(pixels / ratio))
        if 0 < w <= width and 0 < h <= height:
            return int(down * (height - h + 1)), int(right * (width - w + 1)), h, w
    return 0, 0, height, width
