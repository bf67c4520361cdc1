"""Layers of filters as they were learned, for the question `decomposition`, and what they are drawn as."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor

from core.concepts.deconvolution import Decomposition, LayerStack, reconstruct
from core.drawing.rendering import tile_images
from inquiry.layers.inspection import LayerInspection

SHOWN, ZOOM, ACROSS = 6, 3, 8
"""Images that are drawn, how much larger than they are, the gap between drawings (px), and drawings in a row."""


@dataclass(frozen=True)
class LearnedStack:
    """What was learned, and what it says of held-out images.

    Attributes
    ----------
    stack
        The layers.
    rows
        Numbers of the held-out images (B,) among those inspected.
    pixels
        Those images (B, 3, S, S), in [0, 1].
    contrast
        The same without their local mean, divided by ``scale``: what the layers rebuild.
    found
        Their decomposition.
    """

    stack: LayerStack
    rows: tuple[int, ...]
    pixels: Tensor
    contrast: Tensor
    scale: float
    decomposition: Decomposition

    @cached_property
    def smooth(self) -> Tensor:
        """Return the local mean (B, 3, S, S) of the images."""
        return self.pixels - self.scale * self.contrast

    def find_strongest(self, layer: int, k: int, count: int) -> list[tuple[int, int, int]]:
        """Find the image, row and column of the largest activations of a filter by magnitude, one of each image."""
        size = self.decomposition.activations[layer][:, k].abs()
        values, places = size.flatten(1).max(1)
        order = values.argsort(descending=True)[:count].tolist()
        return [(b, *divmod(int(places[b]), size.shape[2])) for b in order if values[b] > 0]


def draw_decomposition(inspected: LayerInspection) -> dict[str, Image.Image]:
    """Draw the filters of each layer where they are strongest, and some images as each layer rebuilds them."""
    learned = inspected.kept.get("decomposition")
    if learned is None:
        return {}
    layers = range(len(learned.stack.filters))
    drawn = {f"filters of layer {layer + 1}": draw_filters_of(learned, layer) for layer in layers}
    return drawn | {"images as rebuilt": draw_rebuilt(learned)}


def draw_filters_of(learned: LearnedStack, layer: int) -> Image.Image:
    """Draw, for each filter, its largest activation projected to pixels, next to that part of the image."""
    pairs = []
    for k in range(learned.stack.filters[layer].shape[0]):
        for b, row, column in learned.find_strongest(layer, k, 1):
            patch = project_activation(learned, layer, (b, k, row, column))
            inside = find_box(patch, _find_field(learned, layer))
            top, left, bottom, right = inside
            one = patch[:, top:bottom, left:right]
            grey = 0.5 + one / (2 * one.abs().max().clamp(min=1e-12))
            pairs.append(torch.cat([grey, learned.pixels[b][:, top:bottom, left:right]], 2))
    return tile_images([_enlarge(one) for one in pairs], ACROSS)


def project_activation(learned: LearnedStack, layer: int, place: tuple[int, int, int, int]) -> Tensor:
    """Project one activation, of an image, filter, row and column, to the pixels (3, S, S) by the image's switches."""
    b, k, row, column = place
    z = torch.zeros_like(learned.decomposition.activations[layer][b : b + 1])
    z[0, k, row, column] = learned.decomposition.activations[layer][b, k, row, column]
    switches = [one.only(slice(b, b + 1)) for one in learned.decomposition.switches[:layer]]
    return reconstruct(z, learned.stack.filters[: layer + 1], switches)[0]


def _find_field(learned: LearnedStack, layer: int) -> int:
    """Return the side, px, of what one activation of a layer can reach: s of layer 1, wider with each layer."""
    below = learned.stack.settings[:layer]
    field = learned.stack.filters[layer].shape[-1]
    for settings in reversed(below):
        field = field * settings.side + settings.size - 1
    return min(field, learned.pixels.shape[3])


def find_box(patch: Tensor, field: int) -> tuple[int, int, int, int]:
    """Find the square of side ``field`` around what is not 0 in (3, S, S): top, left, bottom, right, exclusive."""
    side = patch.shape[-1]
    ends = []
    for axis in (2, 1):
        lit = torch.nonzero(patch.abs().sum(0).sum(axis - 1) > 0)[:, 0]
        centre = int(lit.float().mean()) if len(lit) else side // 2
        start = min(max(0, centre - field // 2), side - field)
        ends.append((start, start + field))
    (top, bottom), (left, right) = ends
    return top, left, bottom, right


def draw_rebuilt(learned: LearnedStack) -> Image.Image:
    """Draw some held-out images, each above itself as every layer rebuilds it."""
    shown = slice(0, SHOWN)
    rows = [learned.pixels[shown]]
    rows += [learned.smooth[shown] + learned.scale * rebuilt[shown] for rebuilt in learned.decomposition.rebuilt]
    return tile_images([_enlarge(image) for row in rows for image in row], len(learned.pixels[shown]))


def _enlarge(image: Tensor) -> Image.Image:
    values: NDArray[np.uint8] = (255 * image.clamp(0, 1)).round().permute(1, 2, 0).byte().numpy()
    return ImageOps.scale(Image.fromarray(values), ZOOM, Image.Resampling.NEAREST)
