"""Inputs that stand for "nothing to see": what an attribution is measured from.

Which one is right is a choice to report, not a fact: Sturmfels, Lundberg & Lee 2020 (doi:10.23915/distill.00022).
"""

from __future__ import annotations

from typing import Literal

import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from core.classifier import Classifier
from core.device import stream

Baseline = Literal["black", "mean", "zero", "blur", "noise"]

BLUR = 0.1
"""Standard deviation of the blur as a share of the picture's longer side."""


def baselines(classifier: Classifier, inputs: Tensor, kind: str, seed: int) -> Tensor:
    """One baseline (B, C, H, W) for each input; the same for all but with ``"blur"``.

    ``"black"`` and ``"mean"`` are pictures of one colour, ``"noise"`` a picture of uniformly random pixels drawn from
    ``seed``, all through the classifier's own transforms; ``"zero"`` is the network's input 0 (under the usual
    normalisation the data set's mean); ``"blur"`` is the input itself, blurred.
    """
    if kind == "zero":
        return torch.zeros_like(inputs)
    if kind == "blur":
        return _blurred(inputs, BLUR * max(inputs.shape[2:]))
    if kind == "noise":
        return _noise(classifier, seed).expand_as(inputs)
    return classifier.fill(kind).expand_as(inputs)


def _noise(classifier: Classifier, seed: int) -> Tensor:
    shape = (*classifier.input_shape[1:], 3)
    pixels = torch.randint(256, shape, generator=stream(seed, 0), dtype=torch.uint8)
    return classifier.preprocess(Image.fromarray(pixels.numpy()))


def _blurred(inputs: Tensor, deviation: float) -> Tensor:
    """Gaussian blur with a standard deviation in px; the border repeats outwards."""
    reach = max(1, round(3 * deviation))
    kernel = torch.exp(-0.5 * (torch.arange(-reach, reach + 1) / deviation) ** 2)
    weight = (kernel / kernel.sum()).view(1, 1, -1, 1).expand(inputs.shape[1], 1, -1, 1)
    for turned in (weight, weight.transpose(2, 3)):
        pad = (reach, reach, 0, 0) if turned.shape[2] == 1 else (0, 0, reach, reach)
        inputs = F.conv2d(F.pad(inputs, pad, mode="replicate"), turned, groups=inputs.shape[1])
    return inputs
