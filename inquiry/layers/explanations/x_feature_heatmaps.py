"""Heatmaps of x-features of held-out images, by either of two methods, for the question `x_features`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from core.attribution.places.place import enlarge_maps, find_layout, select_layer
from core.concepts.x_feature_maps import trace_x_features
from core.concepts.x_features import XFeatures
from core.drawing.rendering import Scale, overlay, tile_images
from core.errors import ForetellError
from core.layers.layers import maps_of
from inquiry.layers.inspection import LayerInspection, blocks

SHOWN, SIDE, OPACITY = 6, 128, 0.8
"""Images of an x-feature that are drawn, their width and the gap between them, px, and the strongest opacity."""
Heatmap = Literal["gradient_x_activation", "contrastive_excitation"]
TRIED = 8
"""Images whose activations say whether a layer has negative ones."""


@dataclass(frozen=True)
class JudgedFeatures:
    """x-features of a class in a layer, and their heatmaps of N held-out images of the class.

    Attributes
    ----------
    x_features
        The fitted x-features.
    rows
        Numbers of the images (N,) among those inspected.
    maps
        Heatmaps (N, n, h, w), positive for the class: what each place adds to the logit through each x-feature, or
        winning probabilities, with the sign of the x-feature's weight.
    adds
        What each x-feature adds to the logit (N, n).
    heatmap, layer
        How they were computed, and the layer whose places they have.
    """

    x_features: XFeatures
    rows: tuple[int, ...]
    maps: Tensor
    adds: Tensor
    heatmap: Heatmap
    layer: str

    def weigh_places(self, i: int) -> Tensor:
        """Return the weights (N, h, w), not negative, by which an x-feature is localised.

        The sizes of what places add; of contrastive winning probabilities only what is positive, as in the source.
        """
        own = self.maps[:, i]
        if self.heatmap == "gradient_x_activation":
            return own.abs()
        return (own * self.x_features.weights[i].sign()).clamp(min=0)


def draw_heatmaps(
    inspected: LayerInspection,
    x_features: XFeatures,
    rows: tuple[int, ...],
    maps: Tensor,
    layer: str,
    heatmap: Heatmap,
    lowest: str,
) -> JudgedFeatures:
    """Compute heatmaps of images (N,) with these outputs (N, S, h, w) of the x-features' ``layer``.

    ``lowest`` is the layer down to which excitation is traced, ``""`` that of `find_lowest_layer`.

    Raises
    ------
    ForetellError
        A part of the network without a rule, or a lowest layer that cannot be.
    """
    drawn = x_features.draw_maps(maps)
    adds = drawn.sum((2, 3))
    if heatmap == "gradient_x_activation":
        return JudgedFeatures(x_features, rows, drawn, adds, heatmap, layer)
    down = lowest or find_lowest_layer(inspected, layer)
    traced = trace_x_features(inspected.classifier, inspected.inputs[list(rows)], x_features, layer, down)
    signed = traced.double() * x_features.weights.sign()[:, None, None]
    return JudgedFeatures(x_features, rows, signed, adds, heatmap, down)


def check_heatmap(heatmap: Heatmap, lowest: str) -> None:
    """Raise the error for a lowest layer where nothing is traced."""
    if lowest and heatmap != "contrastive_excitation":
        raise ForetellError(
            f"heatmap_layer={lowest} is for heatmap=contrastive_excitation, and {heatmap} has the places of the "
            "x-features' own layer: leave heatmap_layer out, or choose heatmap=contrastive_excitation."
        )


def find_lowest_layer(inspected: LayerInspection, layer: str) -> str:
    """Find the first block with places and without negative outputs; with none before ``layer``, the last with places.

    Winning probabilities are defined for activations that are not negative.
    """
    classifier, inputs = inspected.classifier, inspected.inputs[:TRIED]
    for name in blocks(classifier):
        if name == layer:
            break
        if find_layout(classifier, name) is not None:
            maps = maps_of(classifier, inputs, name)
            if maps.shape[2:].numel() > 1 and float(maps.min()) >= 0:
                return name
    return select_layer(classifier, "")


def draw_x_features(inspected: LayerInspection) -> dict[str, Image.Image]:
    """Draw, for each x-feature, the held-out images of the class to which it adds most, and its heatmap of each."""
    read = inspected.kept.get("x_features")
    if not isinstance(read, JudgedFeatures) or read.maps.shape[2:].numel() == 1:
        return {}
    rows, n = list(read.rows), read.maps.shape[1]
    drawn = [
        enlarge_maps(read.maps[:, i].float(), inspected.inputs[rows]) / read.maps.shape[2:].numel() for i in range(n)
    ]
    scale = Scale(0.0, float(np.quantile(torch.stack(drawn).abs().numpy(), 0.995)) or 1.0)
    order = read.adds.argsort(dim=0, descending=True, stable=True)
    return {f"x-feature {i + 1}": _draw(inspected, rows, drawn[i], order[:SHOWN, i], scale) for i in range(n)}


def _draw(inspected: LayerInspection, rows: list[int], maps: Tensor, chosen: Tensor, scale: Scale) -> Image.Image:
    height = round(SIDE * inspected.inputs.shape[2] / inspected.inputs.shape[3])
    images = {one: inspected.classifier.render_input(inspected.inputs[rows[one]]) for one in chosen.tolist()}
    tiles = [image.resize((SIDE, height), Image.Resampling.BICUBIC) for image in images.values()]
    tiles += [overlay(image, scale.normalise_map(maps[k]), (SIDE, height), OPACITY) for k, image in images.items()]
    return tile_images(tiles, len(images))
