"""A trained explainer with the held-out images, for the question `explainer`, and the heatmaps of its features."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from PIL import Image
from torch import Tensor

from core.attribution.places.place import enlarge_maps
from core.concepts.explainer import TrainedExplainer, keep_places
from core.drawing.rendering import Scale, overlay, tile_images
from inquiry.layers.inspection import LayerInspection

DRAWN, SHOWN, SIDE, OPACITY = 3, 6, 128, 0.8
"""Features that are drawn, images of each, their width and the gap between them, px, and the strongest opacity."""


@dataclass(frozen=True)
class JudgedExplainer:
    """A trained explainer with the held-out images.

    Attributes
    ----------
    rows
        Numbers of the held-out images (I,) among those inspected.
    maps, features
        The layer's outputs and the interpretable features for them (I, K, h, w).
    drawn
        Features to draw.
    """

    layer: str
    trained: TrainedExplainer
    rows: tuple[int, ...]
    maps: Tensor
    features: Tensor
    drawn: tuple[int, ...] = ()


def choose_drawn(each: pd.DataFrame) -> tuple[int, ...]:
    """Choose the features that became most steady, or the first ones where no object is known."""
    if "instability" not in each:
        return tuple(range(min(DRAWN, len(each))))
    falls = (each["instability"] - each["instability_channel"]).nsmallest(DRAWN)
    return tuple(int(k) for k in falls.index)


def draw_explainer(inspected: LayerInspection) -> dict[str, Image.Image]:
    """Draw, for some features, images with the largest maxima of the channel: its heatmap, and the feature's."""
    own = inspected.kept.get("explainer")
    if not isinstance(own, JudgedExplainer):
        return {}
    kept = keep_places(own.features, own.trained.network.shapes)
    return {f"channel {k}": _draw(inspected, own, kept, k) for k in own.drawn}


def _draw(inspected: LayerInspection, own: JudgedExplainer, kept: Tensor, k: int) -> Image.Image:
    order = own.maps[:, k].amax((1, 2)).argsort(descending=True, stable=True)[:SHOWN].tolist()
    rows = [own.rows[i] for i in order]
    height = round(SIDE * inspected.inputs.shape[2] / inspected.inputs.shape[3])
    images = [inspected.classifier.render_input(inspected.inputs[row]) for row in rows]
    tiles = [image.resize((SIDE, height), Image.Resampling.BICUBIC) for image in images]
    for maps in (own.maps, kept):
        drawn = enlarge_maps(maps[order, k].float().clamp(min=0), inspected.inputs[rows])
        scale = Scale(0.0, float(drawn.max()) or 1.0)
        for image, one in zip(images, drawn, strict=True):
            tiles.append(overlay(image, scale.normalise_map(one), (SIDE, height), OPACITY))
    return tile_images(tiles, len(rows))
