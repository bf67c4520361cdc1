"""An image with a square over one of its places: where it lowers the activation of a unit most and least."""

from __future__ import annotations

from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from core.network.classifier import Classifier
from core.units.unit import Unit, response
from study.plan.units import OCCLUDED

Place = tuple[int, int]
"""Row and column of a square, of `ACROSS` each."""
ACROSS = 7
"""Places of the square along each side; neighbours overlap."""
PLACES: tuple[Place, ...] = tuple(product(range(ACROSS), range(ACROSS)))
"""Row by row."""
BATCH = 16


def find_box(place: Place, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom (px) of a square in an image of ``size`` = (width, height)."""
    row, column = place
    width, height = (max(1, round(OCCLUDED * side)) for side in size)
    left = round(column * (size[0] - width) / (ACROSS - 1))
    top = round(row * (size[1] - height) / (ACROSS - 1))
    return left, top, left + width, top + height


def measure_occlusions(classifier: Classifier, unit: Unit, inputs: Tensor) -> NDArray[np.float64]:
    """Measure the activation (P,) of a unit for an input (C, H, W) with a square of the mean colour at each place."""
    fill, (height, width) = classifier.fill("mean"), inputs.shape[1:]
    covered = inputs.repeat(len(PLACES), 1, 1, 1)
    for one, place in zip(covered, PLACES, strict=True):
        left, top, right, bottom = find_box(place, (width, height))
        one[:, top:bottom, left:right] = fill[:, top:bottom, left:right]
    with torch.no_grad():
        each = [response(classifier, unit, part.to(classifier.device)) for part in torch.split(covered, BATCH)]
    measured: NDArray[np.float64] = torch.cat(each).double().cpu().numpy()
    return measured


def draw_occlusion(drawn: Image.Image, place: Place, colour: tuple[int, int, int]) -> Image.Image:
    """Draw the square over an image as participants see it."""
    covered = drawn.copy()
    covered.paste(colour, find_box(place, drawn.size))
    return covered
