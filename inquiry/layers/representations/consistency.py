"""The question `consistency` of `inquiry.layers`: what of a layer another represents, and where it is blind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from core.drawing.rendering import overlay, tile_images
from core.errors import ForetellError
from core.layers.consistency import ORDERS, Consistency
from core.layers.consistency import consistency as _consistency
from core.layers.layers import maps_of
from core.types import Progress
from inquiry.layers.costs import read_each_layer
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.record import Drawing, TableWords, Topic, layer_question
from study import plots

PLACES = 4
PlacesSide = Annotated[int, "Places per side of the grid on which one layer is reconstructed from another, at most."]
DRAWN, SIDE, OPACITY = 6, 160, 0.8
"""Images of a drawing, their width and the gap between them, px, and how opaque the strongest colour is."""
MOST = 0.5
"""Share of a channel's variance above which it is counted as one that the other layer does not represent."""


@dataclass(frozen=True)
class ComparedPair:
    """Two layers, what was found of the first, and the grid of places (rows, columns)."""

    layer: str
    other: str
    consistency: Consistency
    grid: tuple[int, int]


def draw_blind_spots(inspected: LayerInspection) -> dict[str, Image.Image]:
    """Draw, for each pair that `consistency` compared, the held-out images with the largest blind spots.

    Below each image it is drawn in grey: orange where the other layer does not represent what this one does, in full
    colour where as much is missing as there is at a place on average. Layers of one place say nothing of where.
    """
    pairs = [pair for pair in inspected.kept.values() if isinstance(pair, ComparedPair) and pair.grid != (1, 1)]
    return {
        pair.layer if pair.layer == pair.other else f"{pair.layer} from {pair.other}": _draw(inspected, pair)
        for pair in pairs
    }


def plot_consistency(table: pd.DataFrame) -> go.Figure:
    """Draw the share of each layer that can be reconstructed, order by order, and the rest."""
    pairs = name_pairs(table)
    orders = [name for name in table if name.startswith("order_") and not name.endswith("_error")]
    figure = go.Figure()
    for k, name in enumerate([*orders, "inconsistent"]):
        color = plots.INK if name == "inconsistent" else plots.PALETTE[k]
        figure.add_bar(x=pairs, y=table[name], name=name.replace("_", " "), marker={"color": color})
    return plots.apply_layout(figure, "Share of the variance", percent=True).update_layout(barmode="relative")


def name_pairs(table: pd.DataFrame) -> list[str]:
    """Name the two layers that each row compares."""
    return [
        one if one == other else f"{one} from {other}"
        for one, other in zip(table["layer"], table["other"], strict=True)
    ]


@layer_question(
    topic=Topic.REPRESENTATIONS,
    asks="what two layers share",
    reading=(
        "Share of a layer's variance in held-out images that the other layer gives: order 0 by a linear "
        "function, order k by adding k hidden layers. Shares add up to 1: one below 0 made the "
        "prediction worse, and another may exceed 1."
    ),
    publications={"Liang et al. 2019": "https://arxiv.org/abs/1908.01581"},
    compares=True,
    pairs="Knowledge consistency",
    table=TableWords(
        headings={f"order_{k}_error": f"SE, order {k}" for k in range(ORDERS + 1)}, shares=r"order_\d+|inconsistent"
    ),
    drawing=Drawing(
        draw_blind_spots,
        "Orange: what the other layer does not represent; held-out images with the largest blind spots of",
    ),
    figure=plot_consistency,
    cost=read_each_layer,
)
def consistency(inspected: LayerInspection, progress: Progress, *, places: PlacesSide = PLACES) -> pd.DataFrame:
    """Measure how much of each layer can be reconstructed from the same layer of the compared network, by order.

    ``blind`` is the number of channels of which more than half is not found in the other layer. The drawings show
    where: held-out images with its largest blind spots.
    """
    rows = []
    for pair in _compare(inspected, progress, places):
        compared = pair.consistency
        blind = int((compared.channels > MOST).sum())
        rows.append(
            [pair.layer, pair.other, *compared.shares.tolist(), *compared.errors.tolist(), compared.inconsistent, blind]
        )
        inspected.kept[f"{pair.layer} {pair.other}"] = pair
    orders = range(ORDERS + 1)
    named = [*(f"order_{k}" for k in orders), *(f"order_{k}_error" for k in orders)]
    return pd.DataFrame(rows, columns=["layer", "other", *named, "inconsistent", "blind"])


def list_blind_spots(pair: ComparedPair) -> list[tuple[int, Tensor]]:
    """List the held-out images by their largest blind spot: the image's number, and what is left (h, w)."""
    size = pair.grid[0] * pair.grid[1]
    images = pair.consistency.rows[::size] // size
    maps = pair.consistency.left.reshape(-1, *pair.grid)
    order = maps.flatten(1).amax(1).argsort(descending=True, stable=True)
    return [(int(images[i]), maps[i]) for i in order.tolist()]


def _compare(inspected: LayerInspection, progress: Progress, places: int) -> Iterator[ComparedPair]:
    pairs = list_pairs(inspected)
    if places < 1:
        raise ForetellError(f"places={places}: the grid has 1 or more places per side.")
    for done, (layer, other) in enumerate(pairs, 1):
        x, y, owner, grid = read_pair(inspected, layer, other, places)
        yield ComparedPair(layer, other, _consistency(x, y, images=owner, generator=inspected.generator()), grid)
        progress(done, len(pairs), "reconstructing layers")


def read_pair(
    inspected: LayerInspection, layer: str, other: str, places: int
) -> tuple[Tensor, Tensor, Tensor, tuple[int, int]]:
    """Read two layers on one grid of places: rows (N h w, D) and (N h w, E), the image of each row, and (h, w)."""
    one = maps_of(inspected.classifier, inspected.inputs, layer)
    two = maps_of(inspected.compared, inspected.inputs_compared, other)
    grid = (min(one.shape[2], two.shape[2], places), min(one.shape[3], two.shape[3], places))
    x, y = (adaptive_avg_pool2d(maps, grid).flatten(2).transpose(1, 2).flatten(0, 1) for maps in (one, two))
    return x, y, torch.arange(len(one)).repeat_interleave(grid[0] * grid[1]), grid


def list_pairs(inspected: LayerInspection) -> list[tuple[str, str]]:
    if len(inspected.layers) != len(inspected.layers_compared):
        raise ForetellError(
            f"{len(inspected.layers)} layers and {len(inspected.layers_compared)} of the other network: consistency "
            "compares pairs, so give as many of each (layer and other-layer)."
        )
    pairs = list(zip(inspected.layers, inspected.layers_compared, strict=True))
    if inspected.compared is inspected.classifier and any(layer == other for layer, other in pairs):
        raise ForetellError(
            "A layer is consistent with itself: give a second network (other), or as many of other layers "
            "(other-layer) as layers."
        )
    return pairs


def _draw(inspected: LayerInspection, pair: ComparedPair) -> Image.Image:
    spots = list_blind_spots(pair)[:DRAWN]
    height = round(SIDE * inspected.inputs.shape[2] / inspected.inputs.shape[3])
    images = [inspected.classifier.render_input(inspected.inputs[i]) for i, _ in spots]
    values = [left.clamp(0, 1).numpy().astype(np.float32) for _, left in spots]
    tiles = [image.resize((SIDE, height), Image.Resampling.BICUBIC) for image in images]
    tiles += [overlay(*pair, (SIDE, height), OPACITY) for pair in zip(images, values, strict=True)]
    return tile_images(tiles, len(spots))
