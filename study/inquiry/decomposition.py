"""The question `decomposition` of `study.inquiry.layers`: what are the images made of, learned without labels?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from scipy.ndimage import gaussian_filter
from scipy.special import stdtrit
from torch import Tensor

from core.concepts.deconvolution import (
    Decomposition,
    DeconvolutionSettings,
    LayerStack,
    add_layer,
    decompose,
    draw_filters,
    reconstruct,
)
from core.drawing.rendering import tile_images
from core.errors import ForetellError
from core.types import Progress
from data.types import ImageSet
from study.inquiry.interventions import draw_rows
from study.inquiry.layers import LayerInspection

LEAST = 9
"""Images, of which a third is held out."""
BLUR = 12
"""The local mean that is subtracted is a Gaussian one, whose standard deviation is the side divided by this."""
STRONGEST = 3
"""Held-out images that are named for each filter."""
SHOWN, ZOOM, ACROSS = 6, 3, 8
"""Images that are drawn, how much larger than they are, the gap between drawings (px), and drawings in a row."""
COLUMNS = ("layer", "filter", "lost", "lost_error", "lost_random", "random_error", "active", "images", "share",
           "strongest", "note")  # fmt: skip


FilterCounts = Annotated[str, "Number of filters of each layer, separated by commas, from the first layer up."]
ImageSide = Annotated[int, "Side of the images, px: they are cut square and shrunk."]
FilterSide = Annotated[int, "Side of a filter, in places of the layer below."]
ErrorWeight = Annotated[
    float, "Price of the error compared with that of activations (lambda), halved from layer to layer."
]
Epochs = Annotated[int, "Passes over the images, each with one update of the filters."]


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


def decomposition(
    inspected: LayerInspection,
    progress: Progress,
    *,
    filters: FilterCounts = "12,24",
    images: int = 90,
    side: ImageSide = 48,
    size: FilterSide = 5,
    weight: ErrorWeight = 2.0,
    epochs: Epochs = 8,
) -> pd.DataFrame:
    """Learn what the images are made of, without labels: layers of filters that rebuild them from few activations.

    Adaptive deconvolutional network of Zeiler et al. 2011, learned from two thirds of the drawn images and judged on
    the others; the network is not asked. Images are freed of their local mean, and each layer rebuilds the image itself
    through the layers below. ``lost`` is the share of the contrast's energy that a layer does not rebuild, with its
    standard error over held-out images, ``lost_random`` that with random filters and ``random_error`` the standard
    error of the difference. ``active`` is the share of activations that are not 0. For each filter, ``images`` is the
    number of held-out images in which it is active, ``share`` its part of the layer's activations, and ``strongest``
    names the images with the largest. ``note`` warns where learning has not helped.

    Parameters
    ----------
    images
        Largest number of images that are drawn; two thirds are learned from.
    """
    settings = list_settings(filters, size, weight, epochs)
    learned_from, rows, pixels = _read_images(inspected, images, side)
    contrast, scale = remove_local_mean(pixels)
    fitted, judged = contrast[: len(learned_from)], contrast[len(learned_from) :]
    stack = LayerStack()
    for own in settings:
        stack = add_layer(stack, fitted, own, generator=inspected.generator(), progress=progress)
    layers = decompose(judged, stack)
    learned = LearnedStack(stack, rows, pixels[len(learned_from) :], judged, scale, layers)
    inspected.kept["decomposition"] = learned
    tables = [_describe_layer(inspected, learned, layer) for layer in range(len(settings))]
    return pd.DataFrame([row for table in tables for row in table], columns=list(COLUMNS))


def list_settings(filters: str, size: int, weight: float, epochs: int) -> list[DeconvolutionSettings]:
    """List the settings of each layer from texts such as 12,24; the weight is halved from layer to layer."""
    try:
        counts = [int(count) for count in filters.split(",")]
    except ValueError:
        raise ForetellError(f"filters={filters!r}: give the number of filters of each layer, such as 12,24.") from None
    return [
        DeconvolutionSettings(count, size=size, weight=weight / 2**layer, epochs=epochs)
        for layer, count in enumerate(counts)
    ]


def _read_images(inspected: LayerInspection, most: int, side: int) -> tuple[tuple[int, ...], tuple[int, ...], Tensor]:
    """Draw images to learn from and to judge by; return their rows, and the pixels (N, 3, side, side) of both."""
    chosen = draw_rows(len(inspected.images), inspected.request.seed, most)
    if len(chosen) < LEAST:
        raise ForetellError(f"{len(chosen)} images are too few to learn from and to judge by: give {LEAST} or more.")
    mixed = [chosen[k] for k in torch.randperm(len(chosen), generator=inspected.generator()).tolist()]
    held = round(len(mixed) / 3)
    ordered = (*sorted(mixed[held:]), *sorted(mixed[:held]))
    return ordered[: len(mixed) - held], ordered[len(mixed) - held :], open_squares(inspected.images, ordered, side)


def open_squares(images: ImageSet, rows: Sequence[int], side: int) -> Tensor:
    """Open images, cut square and shrunk: (N, 3, side, side) in [0, 1]."""
    if side < 8:
        raise ForetellError(f"side={side}: choose 8 px or more.")
    opened = [ImageOps.fit(images.open(k).convert("RGB"), (side, side)) for k in rows]
    return torch.from_numpy(np.stack([np.asarray(image) for image in opened])).permute(0, 3, 1, 2).float() / 255


def remove_local_mean(pixels: Tensor) -> tuple[Tensor, float]:
    """Subtract the local mean from images (N, 3, S, S), and divide all of them by one number, which is returned too.

    Raises
    ------
    ForetellError
        The images have no contrast.
    """
    blur = pixels.shape[3] / BLUR
    contrast = pixels - torch.from_numpy(gaussian_filter(pixels.numpy(), (0, 0, blur, blur), mode="nearest"))
    scale = float(contrast.std())
    if scale < 1e-4:
        raise ForetellError("The images are of one colour each: there is nothing to take apart. Give other images.")
    return contrast / scale, scale


def measure_lost(rebuilt: Tensor, images: Tensor) -> Tensor:
    """Measure the share of each image's energy (B,) that is not rebuilt; images are (B, C, H, W)."""
    return (rebuilt - images).square().sum((1, 2, 3)) / images.square().sum((1, 2, 3)).clamp(min=1e-12)


def _describe_layer(inspected: LayerInspection, learned: LearnedStack, layer: int) -> list[dict[str, object]]:
    """Return the row about a whole layer, then one about each of its filters."""
    z = learned.decomposition.activations[layer]
    lost = measure_lost(learned.decomposition.rebuilt[layer], learned.contrast)
    random = _lose_at_random(inspected, learned, layer)
    row: dict[str, object] = {"layer": layer + 1, "filter": "all", "images": len(z)}
    row["lost"], row["lost_error"] = estimate_mean(lost)
    row["lost_random"], row["random_error"] = float(random.mean()), estimate_mean(random - lost)[1]
    row["active"] = float((z != 0).float().mean())
    row["note"] = " ".join(warn_of(layer + 1, lost, random, z)) or None
    total = float(z.abs().sum()) or 1.0
    ids = inspected.images.ids
    each: list[dict[str, object]] = [
        {
            "layer": layer + 1,
            "filter": str(k),
            "active": float((z[:, k] != 0).float().mean()),
            "images": int((z[:, k] != 0).flatten(1).any(1).sum()),
            "share": float(z[:, k].abs().sum()) / total,
            "strongest": ", ".join(ids[learned.rows[b]] for b, _, _ in learned.find_strongest(layer, k, STRONGEST)),
        }
        for k in range(z.shape[1])
    ]
    return [row, *each]


def _lose_at_random(inspected: LayerInspection, learned: LearnedStack, layer: int) -> Tensor:
    """Measure what each held-out image loses (B,) where the filters of a layer are random, those below learned."""
    stack = learned.stack
    drawn = draw_filters(stack.filters[layer].shape[1], stack.settings[layer], inspected.generator())
    random = LayerStack((*stack.filters[:layer], drawn), stack.settings[: layer + 1])
    return measure_lost(decompose(learned.contrast, random).rebuilt[layer], learned.contrast)


def estimate_mean(values: Tensor) -> tuple[float, float]:
    """Return the mean of values (B,) and its standard error."""
    return float(values.mean()), float(values.std() / len(values) ** 0.5)


def warn_of(layer: int, lost: Tensor, random: Tensor, z: Tensor) -> list[str]:
    """Warn of filters that rebuild no better than random ones, and of filters without activations."""
    notes = []
    gain, error = estimate_mean(random - lost)
    if not gain > stdtrit(len(lost) - 1, 0.975) * error:
        notes.append(
            f"On held-out images the filters of layer {layer} rebuild no better than random ones: they lose "
            f"{float(lost.mean()):.1%} against {float(random.mean()):.1%}. Learn from more images, or for more epochs."
        )
    unused = [str(k) for k in range(z.shape[1]) if not z[:, k].any()]
    if unused:
        notes.append(f"Filters of layer {layer} without activations in held-out images: {', '.join(unused)}.")
    return notes


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
