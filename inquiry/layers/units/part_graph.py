"""The question `parts` of `inquiry.layers`: which parts do channels detect, and which go together?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from scipy.special import stdtrit
from torch import Tensor

from core.concepts.explanatory_graph import (
    FoundParts,
    GraphSettings,
    check_settings,
    choose_channels,
    find_parts,
    learn_layer,
)
from core.concepts.part_measures import measure_instability
from core.drawing.views import view
from core.errors import ForetellError
from core.layers.layers import maps_of
from core.types import Progress
from inquiry.files.targets import TOP, ClassName, resolve_class
from inquiry.layers.costs import read_each_layer
from inquiry.layers.inspection import LayerInspection, blocks
from inquiry.layers.record import Drawing, TableWords, Topic, layer_question
from inquiry.layers.units.learned_parts import LearnedLayer, draw_parts
from study import plots

LEAST = 12
"""Images of the class, of which a third is held out."""
LAYERS = 2
"""Layers of a graph by default: the last blocks with places."""
SMALLEST = 4
"""Places that a layer has at least; by default on its shorter side."""
RISING = 1e-3
"""Rise of the likelihood in the last sweep, in nats an activation, from which on the search has not converged."""
COLUMNS = ("class", "layer", "part", "images", "x", "y", "goes_with", "share", "log_p", "gain", "gain_error",
           "instability", "instability_error", "instability_maximum", "instability_fixed", "note")  # fmt: skip


def plot_parts(table: pd.DataFrame) -> go.Figure:
    """Draw how much of its channel's activation each part explains, by layer."""
    figure = go.Figure()
    for k, (layer, own) in enumerate(table[table["part"] != "all"].groupby("layer", sort=False)):
        colour = plots.PALETTE[k % len(plots.PALETTE)]
        figure.add_bar(x=f"{layer}: " + own["part"], y=own["share"], name=str(layer), marker={"color": colour})
    return plots.apply_layout(figure, "Share explained", percent=True)


@layer_question(
    topic=Topic.UNITS,
    asks="object parts that channels detect",
    reading=(
        "Share of its channel's activation in held-out images that each part explains; parts are named "
        "channel.part, by layer."
    ),
    publications={"Zhang et al. 2018": "https://arxiv.org/abs/1708.01785"},
    layered=True,
    labels={
        "background": "Background density (tau)",
        "channels": "Channels of each layer",
        "parts": "Parts of each channel",
    },
    table=TableWords(shares="share"),
    drawing=Drawing(
        draw_parts, "Held-out images of the class, and where the largest part of each channel is, in the layer"
    ),
    figure=plot_parts,
    cost=read_each_layer,
)
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
