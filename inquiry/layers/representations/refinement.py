"""The question `refinement` of `inquiry.layers`: do consistent features predict the category better?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from torch import Tensor

from core.errors import ForetellError
from core.layers.consistency import refine
from core.layers.probe import Probe, compare_probes, linear_probe
from core.shares import share_of
from core.types import Progress
from inquiry.layers.costs import PlannedQuestion, Work
from inquiry.layers.inspection import LayerInspection, blocks
from inquiry.layers.record import TableWords, Topic, layer_question
from inquiry.layers.representations.consistency import PLACES, PlacesSide, list_pairs, name_pairs, read_pair
from study import plots

FOLDS = 5
"""Of the probes within a half, at most."""
OWN, OTHER = "own", "other layer"
"""Names of the features that are not refined."""


def plot_refinement(table: pd.DataFrame) -> go.Figure:
    """Draw the accuracy that is read from each layer's own, refined and compared features, with its interval."""
    pairs = name_pairs(table)
    figure = go.Figure()
    for k, name in enumerate(table["features"].unique()):
        own = table["features"] == name
        part = table[own]
        error = {"type": "data", "array": part["high"] - part["accuracy"], "arrayminus": part["accuracy"] - part["low"]}
        color = plots.INK if k == 0 else plots.PALETTE[k - 1]
        x = [pair for pair, chosen in zip(pairs, own, strict=True) if chosen]
        figure.add_bar(x=x, y=part["accuracy"], name=name, error_y=error, marker={"color": color})
    return plots.apply_layout(figure, "Accuracy", percent=True).update_layout(barmode="group")


REFINED = 45
"""Gradients of one image that the refinement of a layer costs, about: mostly the probes, which grow with the images."""


def refine_each_layer(planned: PlannedQuestion, _: Mapping[str, Any]) -> Work:
    """Refine each layer."""
    layers = len(planned.query.layers) or len(blocks(planned.classifier))
    return Work(gradients=REFINED * layers * planned.image_count)


@layer_question(
    topic=Topic.REPRESENTATIONS,
    asks="accuracy of what is shared",
    reading=(
        "Accuracy of a linear probe of the layer's own and of the shared features, with 95% intervals. "
        "Gain: the paired difference from the layer's own features."
    ),
    publications={"Liang et al. 2019": "https://arxiv.org/abs/1908.01581"},
    compares=True,
    pairs="Refinement",
    table=TableWords(shares="gain"),
    figure=plot_refinement,
    cost=refine_each_layer,
)
def refinement(inspected: LayerInspection, progress: Progress, *, places: PlacesSide = PLACES) -> pd.DataFrame:
    """Read the category from a layer, and from what of it can be reconstructed from the compared network's layer.

    Each row is a linear probe, of the layer's own features, of its consistent features up to an order (refined), or of
    the compared layer. ``gain`` is the accuracy beyond that of the own features on the same images, ``p_value``
    McNemar's exact test. No image is read by a probe, or reconstructed by a mapping, that has seen it: mappings are
    trained on one half of the images, and probes are cross-validated within the other.
    """
    if places < 1:
        raise ForetellError(f"places={places}: the grid has 1 or more places per side.")
    labels = torch.from_numpy(np.asarray(inspected.images.labels))
    pairs, rows = list_pairs(inspected), []
    for done, (layer, other) in enumerate(pairs, 1):
        features, half = _list_features(inspected, layer, other, places)
        probes = {name: _probe_halves(inspected, values, labels, half) for name, values in features.items()}
        for name, probe in probes.items():
            paired = compare_probes(probe, probes[OWN], labels) if name != OWN else [math.nan] * 4
            rows.append([layer, other, name, probe.accuracy, probe.low, probe.high, *paired])
        progress(done, len(pairs), "refining layers")
    names = ["layer", "other", "features", "accuracy", "low", "high", "gain", "gain_low", "gain_high", "p_value"]
    return pd.DataFrame(rows, columns=names)


def _list_features(inspected: LayerInspection, layer: str, other: str, places: int) -> tuple[dict[str, Tensor], Tensor]:
    """List the features (N, D) of each image, means over places, by name; and the half (N,) of each image."""
    x, y, owner, grid = read_pair(inspected, layer, other, places)
    size = grid[0] * grid[1]

    def average(values: Tensor) -> Tensor:
        return values.reshape(-1, size, values.shape[1]).mean(1)

    refined, half = refine(x, y, images=owner, generator=inspected.generator())
    orders = {name_order(order): average(values) for order, values in enumerate(refined)}
    return {OWN: average(x), **orders, OTHER: average(y)}, half[::size]


def _probe_halves(inspected: LayerInspection, features: Tensor, labels: Tensor, half: Tensor) -> Probe:
    """Read the labels within each half of the images, in as many folds as the rarest label allows, and join both."""
    rarest = min(int(torch.unique(labels[half == k], return_counts=True)[1].min()) for k in range(2))
    predicted, chance, folds = torch.empty_like(labels), 0.0, max(2, min(FOLDS, rarest))
    for k in range(2):
        probe = linear_probe(features[half == k], labels[half == k], folds=folds, generator=inspected.generator())
        predicted[half == k] = probe.predicted
        chance += probe.chance / 2
    return Probe(*share_of(int((predicted == labels).sum()), len(labels)), chance, predicted)


def name_order(order: int) -> str:
    """Name the consistent features up to an order: ``order 0``, ``orders 0 to 2``."""
    return "order 0" if order == 0 else f"orders 0 to {order}"
