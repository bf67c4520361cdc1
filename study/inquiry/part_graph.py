"""The question `parts` of `study.inquiry.layers`: which parts do channels detect, and which go together?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from PIL import Image, ImageDraw
from scipy.special import stdtrit
from torch import Tensor

from core.concepts.explanatory_graph import (
    FoundParts,
    GraphLayer,
    GraphSettings,
    check_settings,
    choose_channels,
    compute_likelihoods,
    compute_shares,
    find_parts,
    learn_layer,
    list_places,
    normalise_activations,
)
from core.concepts.part_measures import estimate_gain, measure_instability
from core.drawing.rendering import tile_images
from core.drawing.views import view
from core.errors import ForetellError
from core.fonts import find_font
from core.layers.layers import maps_of
from core.types import Progress
from study.inquiry.layers import LayerInspection, blocks
from study.inquiry.targets import TOP, ClassName, resolve_class

LEAST = 12
"""Images of the class, of which a third is held out."""
LAYERS = 2
"""Layers of a graph by default: the last blocks with places."""
SMALLEST = 4
"""Places that a layer has at least; by default on its shorter side."""
RISING = 1e-3
"""Rise of the likelihood in the last sweep, in nats an activation, from which on the search has not converged."""
SHOWN, SIDE = 6, 160
"""Images that are drawn, and their width, px."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#000000")
"""Of as many channels the largest part is drawn. Okabe & Ito (2008): colour-blind readers can tell them apart."""
COLUMNS = ("class", "layer", "part", "images", "x", "y", "goes_with", "share", "log_p", "gain", "gain_error",
           "instability", "instability_error", "instability_maximum", "instability_fixed", "note")  # fmt: skip


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


def parts(
    inspected: LayerInspection,
    progress: Progress,
    *,
    of: ClassName = TOP,
    channels: int = 8,
    parts: int = 2,
    parents: int = 2,
    spread: float = 0.1,
    background: float = 0.5,
    sweeps: int = 30,
) -> pd.DataFrame:
    """Find the parts that channels detect in images of a class, and the parts of the layer above that they go with.

    Explanatory graph of Zhang et al. 2018 (arXiv:1708.01785), learned from two thirds of the images that are predicted
    to be of a class and judged on the others, from the top layer down. ``x`` and ``y`` are where a part usually is,
    from the left and the top, in units of the image's longer side, ``share`` is how much of its channel's activation it
    explains, and ``goes_with`` names its parents: where these are displaced, it is expected to be displaced as much.
    ``log_p`` is the mean log density of an activation's place, in nats, and ``gain`` how much of it is due to the layer
    above, with its standard error over images. ``instability`` is how much the distance to the object's centre and
    corners varies, with its standard error, for the part, for the channel's maximum and for a fixed place, where the
    set records the object. ``note`` warns where a result is not to be relied on.

    Parameters
    ----------
    channels
        Channels used of each layer: those that respond to the class most, compared with other images.
    parts
        Number of parts of each channel.
    parents
        Largest number of parts of the layer above that a part goes with (M); 0 for none.
    spread
        Standard deviation of where a part is expected, in units of the image's longer side (delta).
    background
        Density of activations that belong to no part, where that of a part integrates to 1 (tau).
    sweeps
        Sweeps of the search, at most (T).
    """
    settings = GraphSettings(parts, parents, spread, background, sweeps)
    check_settings(settings)
    if channels < 1:
        raise ForetellError(f"channels={channels}: choose 1 or more.")
    fitted, judged, others, name = _divide(inspected, of)
    learned: list[LearnedLayer] = []
    above: FoundParts | None = None
    for layer in reversed(_order_layers(inspected)):
        chosen, maps = _read_channels(inspected, layer, (fitted, others), channels)
        graph = learn_layer(maps[fitted], above, settings, generator=inspected.generator(), progress=progress)
        alone = learn_layer(maps[fitted], None, settings, generator=inspected.generator()) if above else graph
        upper = learned[-1] if learned else None
        learned.append(LearnedLayer(layer, chosen, tuple(judged.tolist()), maps[judged], graph, alone, upper))
        above = find_parts(graph, maps[fitted], above)
    inspected.kept["parts"] = tuple(learned)
    landmarks = find_landmarks(inspected, judged.tolist())
    rows = [{"class": name, **row} for own in learned for row in describe_layer(own, landmarks)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _divide(inspected: LayerInspection, of: str) -> tuple[Tensor, Tensor, Tensor, str]:
    """Return the rows of the class to learn from and to judge, those of other images, and the class's name."""
    classifier = inspected.classifier
    predicted = classifier.logits(inspected.inputs).argmax(1)
    k = resolve_class(classifier, of, predicted)
    own, others = (torch.nonzero(chosen)[:, 0] for chosen in (predicted == k, predicted != k))
    name = classifier.names.short[k]
    if len(own) < LEAST or not len(others):
        raise ForetellError(
            f"A graph of parts is learned from {LEAST} or more images that are predicted to be of one class, compared "
            f"with others, and {len(own)} of {len(predicted)} are predicted to be {name}: give more images, or another "
            "class."
        )
    own = own[torch.randperm(len(own), generator=inspected.generator())]
    held = round(len(own) / 3)
    return own[held:].sort().values, own[:held].sort().values, others, name


def _order_layers(inspected: LayerInspection) -> list[str]:
    """Return the requested layers in the network's order, or the last blocks with places."""
    classifier, asked = inspected.classifier, list(inspected.request.layers)
    sides = {name: maps_of(classifier, inspected.inputs[:1], name).shape[2:] for name in asked or blocks(classifier)}
    if not asked:
        asked = [name for name, side in sides.items() if min(side) >= SMALLEST][-LAYERS:]
    if not asked:
        raise ForetellError(
            f"Parts are found at places, and no block of {classifier.name} keeps {SMALLEST} x {SMALLEST} of them apart:"
            " name layers of it that do."
        )
    for name in asked:
        if sides[name].numel() < SMALLEST:
            raise ForetellError(
                f"Parts are found at places, and {name} keeps {sides[name].numel()} apart: name layers with {SMALLEST} "
                "or more, such as those before the pooling."
            )
    with classifier.exclusive() as module:
        order = [name for name, _ in module.named_modules()]
    return sorted(dict.fromkeys(asked), key=order.index)


def _read_channels(
    inspected: LayerInspection, layer: str, rows: tuple[Tensor, Tensor], count: int
) -> tuple[tuple[int, ...], Tensor]:
    """Choose a layer's channels for the class by two sets of rows, its own and others; return their outputs too."""
    maps = maps_of(inspected.classifier, inspected.inputs, layer)
    chosen = choose_channels(maps, *rows, count)
    if not chosen:
        raise ForetellError(f"No channel of {layer} is above 0 in images of the class: name another layer.")
    return chosen, maps[:, list(chosen)]


def find_landmarks(inspected: LayerInspection, rows: Sequence[int]) -> Tensor | None:
    """Find the centre and the corners of the object in inputs, (I, 5, 2) in units of the longer side.

    Not a number where the input does not show the object; None for sets that do not record it.
    """
    mask = inspected.images.mask
    if mask is None:
        return None
    height, width = inspected.inputs.shape[2:]
    landmarks = np.full((len(rows), 5, 2), np.nan)
    for at, row in enumerate(rows):
        seen = view(inspected.classifier, inspected.images.open(row), inspected.inputs[row])
        inside = seen.cut(np.asarray(mask(row), dtype=bool), (width, height))
        if inside.any():
            y, x = (np.flatnonzero(inside.any(axis)) + 0.5 for axis in (1, 0))
            corners = [(left, top) for left in (x[0], x[-1]) for top in (y[0], y[-1])]
            landmarks[at] = np.array([((x[0] + x[-1]) / 2, (y[0] + y[-1]) / 2), *corners]) / max(height, width)
    return torch.from_numpy(landmarks)


def describe_layer(own: LearnedLayer, landmarks: Tensor | None) -> list[dict[str, object]]:
    """Return the row about a whole layer, then one about each of its parts, on held-out images."""
    each = [_describe_part(own, part, landmarks) for part in range(len(own.parts))]
    row: dict[str, object] = {"layer": own.name, "part": "all", "images": len(own.rows), "goes_with": None}
    row["log_p"] = float(own.likelihoods.sum() / own.activations.sum())
    if own.upper:
        row["gain"], row["gain_error"] = own.gain
    row["note"] = " ".join(warn_of(own, pd.DataFrame(each))) or None
    return [row, *each]


def _describe_part(own: LearnedLayer, part: int, landmarks: Tensor | None) -> dict[str, object]:
    active = own.activations[:, part // own.graph.settings.parts].sum(1) > 0
    row: dict[str, object] = {"layer": own.name, "part": own.parts[part], "images": int(active.sum()), "note": None}
    row["x"], row["y"] = own.graph.usual[part].tolist()
    row["share"] = float(own.shares[part])
    row["goes_with"] = ", ".join(own.upper.parts[p] for p in own.graph.parents[part]) if own.upper else ""
    if landmarks is not None:
        row.update(_describe_steadiness(own, part, landmarks, active & ~landmarks.isnan().any(2).any(1)))
    return row


def _describe_steadiness(own: LearnedLayer, part: int, landmarks: Tensor, chosen: Tensor) -> dict[str, object]:
    """Measure how steady a part is on the object in chosen images (I,), compared with two other places."""
    maximum = own.places[own.activations[:, part // own.graph.settings.parts].argmax(1)]
    fixed = own.graph.usual[part].expand(len(own.rows), 2)
    own_value, error = measure_instability(own.found_parts.places[chosen, part], landmarks[chosen])
    return {
        "instability": own_value,
        "instability_error": error,
        "instability_maximum": measure_instability(maximum[chosen], landmarks[chosen])[0],
        "instability_fixed": measure_instability(fixed[chosen], landmarks[chosen])[0],
    }


def warn_of(own: LearnedLayer, parts: pd.DataFrame) -> list[str]:
    """Warn of a search that has not converged, relations that explain nothing, and parts that are but fixed places."""
    notes = []
    reached, sweeps = own.graph.likelihood, own.graph.settings.sweeps
    if len(reached) < 2 or reached[-1] - reached[-2] > RISING:
        notes.append(f"The search for the parts of {own.name} has not converged: take more than {sweeps} sweeps.")
    if own.upper and not own.gain[0] > stdtrit(len(own.rows) - 1, 0.975) * own.gain[1]:
        notes.append(
            f"On held-out images the parts of {own.upper.name} do not tell where those of {own.name} are: the gain is "
            f"{own.gain[0]:.4f} nats (standard error {own.gain[1]:.4f}). Do not rely on what goes with what."
        )
    if "instability" in parts and parts["instability"].mean() >= parts["instability_fixed"].mean():
        notes.append(
            f"The parts of {own.name} do not follow the object: fixed places are as steady on it (instability "
            f"{parts['instability_fixed'].mean():.3f} against {parts['instability'].mean():.3f})."
        )
    return notes


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
