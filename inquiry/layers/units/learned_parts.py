"""The layers of a graph of parts as they were learned, for the question `parts`, and where their parts are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from core.concepts.explanatory_graph import (
    FoundParts,
    GraphLayer,
    compute_likelihoods,
    compute_shares,
    find_parts,
    list_places,
    normalise_activations,
)
from core.concepts.part_measures import estimate_gain
from core.drawing.rendering import tile_images
from core.fonts import find_font
from inquiry.layers.inspection import LayerInspection

SHOWN, SIDE = 6, 160
"""Images that are drawn, and their width, px."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#000000")
"""Of as many channels the largest part is drawn. Okabe & Ito (2008): colour-blind readers can tell them apart."""


@dataclass(frozen=True)
class LearnedLayer:
    """A layer of the graph, with what it says of held-out images.

    Attributes
    ----------
    channels
        Of the layer, in the order of the graph.
    rows
        Numbers of the held-out images (I,) among those inspected.
    maps
        The channels' outputs for them (I, K, h, w).
    alone
        A graph of the same layer that was learned without parents; the same one for the top layer.
    upper
        The layer above, if there is one.
    """

    name: str
    channels: tuple[int, ...]
    rows: tuple[int, ...]
    maps: Tensor
    graph: GraphLayer
    alone: GraphLayer
    upper: LearnedLayer | None

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the parts' names: a part's channel, and its number there."""
        return tuple(f"{channel}.{k + 1}" for channel in self.channels for k in range(self.graph.settings.parts))

    @cached_property
    def activations(self) -> Tensor:
        """Return F (I, K, h·w) of the held-out images."""
        return normalise_activations(self.maps)

    @cached_property
    def places(self) -> Tensor:
        """Return the places (h·w, 2) of the activations."""
        return list_places(*self.maps.shape[2:])

    @cached_property
    def found_parts(self) -> FoundParts:
        """Find the parts."""
        return find_parts(self.graph, self.maps, self.above)

    @property
    def above(self) -> FoundParts | None:
        """Find the parts of the layer above, if there is one."""
        return self.upper.found_parts if self.upper else None

    @cached_property
    def shares(self) -> Tensor:
        """Compute how much of its channel's activation each part explains (V,)."""
        each = self.activations.repeat_interleave(self.graph.settings.parts, 1)
        explained = compute_shares(self.graph, self.activations, self.places, self.above) * each
        return explained.sum((0, 2)) / each.sum((0, 2)).clamp(min=1e-12)

    @cached_property
    def likelihoods(self) -> Tensor:
        """Compute log P (I, K) of the activations, in nats."""
        return compute_likelihoods(self.graph, self.activations, self.places, self.above)

    @cached_property
    def gain(self) -> tuple[float, float]:
        """Estimate what the layer above adds to the mean log density of an activation's place; its standard error."""
        alone = compute_likelihoods(self.alone, self.activations, self.places, None)
        return estimate_gain(self.likelihoods, alone, self.activations)


def draw_parts(inspected: LayerInspection) -> dict[str, Image.Image]:
    """Draw, for each layer, where its parts are in some held-out images."""
    return {own.name: _draw(inspected, own) for own in inspected.kept.get("parts", ())}


def _draw(inspected: LayerInspection, own: LearnedLayer) -> Image.Image:
    height, width = inspected.inputs.shape[2:]
    size = SIDE, round(SIDE * height / width)
    rows = own.rows[:SHOWN]
    images = []
    for at, row in enumerate(rows):
        image = inspected.classifier.render_input(inspected.inputs[row]).convert("L").resize(size).convert("RGB")
        for part, colour in zip(_choose_shown(own), COLOURS, strict=False):
            _mark(image, (max(size) * own.found_parts.places[at, part]).tolist(), own.parts[part], colour)
        images.append(image)
    return tile_images(images, len(images))


def _mark(image: Image.Image, place: Sequence[float], name: str, colour: str) -> None:
    """Draw a dot at a place (x, y) of an image, px, with a name on the side where there is room."""
    pen, (x, y), left = ImageDraw.Draw(image), place, place[0] < 0.75 * image.width
    pen.ellipse((x - 5, y - 5, x + 5, y + 5), colour, "white")
    font, anchor = find_font(name, 11), "lm" if left else "rm"
    pen.text((x + 7 if left else x - 7, y), name, "white", font, anchor, stroke_width=2, stroke_fill="black")


def _choose_shown(own: LearnedLayer) -> list[int]:
    """Choose the part of each channel that explains most of it, in the channels' order."""
    n = own.graph.settings.parts
    shown: list[int] = (own.shares.view(-1, n).argmax(1) + n * torch.arange(len(own.channels))).tolist()
    return shown
