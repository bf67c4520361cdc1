"""Baselines: inputs without information, from which an attribution is measured.

Which one is right is a choice to report, not a fact: Sturmfels, Lundberg & Lee 2020 (doi:10.23915/distill.00022).
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from PIL import Image
from torch import Tensor

from core.network.classifier import Classifier
from core.network.device import send, stream

Baseline = Annotated[
    Literal["black", "mean", "zero", "blur", "noise"],
    "Image to compare with: black, the data's mean colour, the network's input 0 (zero), the image itself blurred, or "
    "random pixels (noise).",
]

BLUR = 0.1
"""Standard deviation of the blur as a share of the image's longer side."""


def baselines(classifier: Classifier, inputs: Tensor, kind: str, seed: int) -> Tensor:
    """Return one baseline (B, C, H, W) for each input; the same for all except with ``"blur"``.

    ``"black"`` and ``"mean"`` are images of one colour, ``"noise"`` an image of uniformly random pixels drawn from
    ``seed``, all through the classifier's own transforms; ``"zero"`` is the network's input 0 (under the usual
    normalisation the data set's mean); ``"blur"`` is the input itself, blurred.
    """
    if kind == "zero":
        return torch.zeros_like(inputs)
    if kind == "blur":
        return blur_inputs(inputs, BLUR * max(inputs.shape[2:]))
    if kind == "noise":
        return noise(classifier, stream(seed, 0)).expand_as(inputs)
    return classifier.fill(kind).expand_as(inputs)


def noise(classifier: Classifier, generator: torch.Generator) -> Tensor:
    """Draw the input (C, H, W) of an image of uniformly random pixels."""
    shape = (*classifier.input_shape[1:], 3)
    pixels = torch.randint(256, shape, generator=generator, dtype=torch.uint8)
    return classifier.preprocess(Image.fromarray(pixels.numpy()))


def colour(classifier: Classifier, generator: torch.Generator) -> Tensor:
    """Draw the input (C, H, W) of an image of one uniformly random colour."""
    red, green, blue = torch.randint(256, (3,), generator=generator).tolist()
    height, width = classifier.input_shape[1:]
    return classifier.preprocess(Image.new("RGB", (width, height), (red, green, blue)))


def blur_inputs(inputs: Tensor, deviation: float) -> Tensor:
    """Apply a Gaussian blur (B, C, H, W) with a standard deviation in px above 0; the border repeats outwards."""
    down, across = (send(_blur_matrix(size, deviation).to(inputs.dtype), inputs.device) for size in inputs.shape[2:])
    return down @ inputs @ across.T


def _blur_matrix(size: int, deviation: float) -> Tensor:
    """Return the blur of a line of ``size`` px as a matrix: ten times faster than a convolution with a wide kernel."""
    reach = max(1, round(3 * deviation))
    offsets = torch.arange(-reach, reach + 1)
    kernel = torch.exp(-0.5 * (offsets / deviation) ** 2).double()
    seen = (torch.arange(size)[:, None] + offsets).clamp(0, size - 1)
    return torch.zeros(size, size, dtype=torch.float64).scatter_add_(1, seen, (kernel / kernel.sum()).expand_as(seen))
