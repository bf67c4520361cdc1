"""The question `modes` of `inquiry.layers`: for which few reasons does a network predict a class?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from PIL import Image
from torch import Tensor

from core.attribution.places.activations import Reading, activation_and_gradient
from core.distillation.modes import DecisionModes, ModeEvidence, find_modes
from core.drawing.rendering import Scale, heatmap, tile_images
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import chunk_size
from core.types import Progress
from core.units.unit import Unit, find_layer_shape
from inquiry.files.targets import TOP, ClassName, resolve_class
from inquiry.layers.costs import read_each_layer
from inquiry.layers.inspection import LayerInspection, blocks
from inquiry.layers.record import Drawing, TableWords, Topic, layer_question
from study import plots

COUNT = 40
"""Images of the class; as many others are compared with them."""
SHOWN, SIDE = 6, 128
"""Images of a mode that are drawn, their width and the gap between them, px."""
STRONGEST = 5
VARYING = 1e-3
"""Relative spread of a layer's gradients below which they are the same for all images."""


@dataclass(frozen=True)
class ReadModes:
    """Modes of a class in a layer.

    Attributes
    ----------
    rows
        Numbers of the images (N,) among those inspected, in the order of the modes' rows.
    maps
        The layer's outputs (N, K, h, w).
    """

    decision_modes: DecisionModes
    rows: tuple[int, ...]
    maps: Tensor


def draw_modes(inspected: LayerInspection) -> dict[str, Image.Image]:
    """Draw, for each mode, some of its images and the mean heatmap of all of them."""
    read = inspected.kept.get("modes")
    if not isinstance(read, ReadModes):
        return {}
    maps = [compute_mean_heatmap(read, i) for i in range(len(read.decision_modes.modes))]
    scale = Scale(0.0, max(float(one.abs().max()) for one in maps) or 1.0)
    return {f"mode {i}": _draw(inspected, read, i - 1, one, scale) for i, one in enumerate(maps, 1)}


def plot_modes(table: pd.DataFrame) -> go.Figure:
    """Draw how many of the class's images each mode has."""
    names = "mode " + table["mode"].astype(str)
    figure = go.Figure(go.Bar(x=names, y=table["images"], marker={"color": plots.PALETTE[0]}))
    return plots.apply_layout(figure, f"Images predicted to be {table['class'].iloc[0]}", percent=False)


@layer_question(
    topic=Topic.EXPLANATIONS,
    asks="groups of similar reasons",
    reading="Number of images of the class in each mode. The table names the channels that a mode relies on.",
    publications={"Zhang et al. 2019": "https://arxiv.org/abs/1802.00121"},
    layered=True,
    labels={"beta": "Penalty for each mode (beta)", "count": "Maximum number of images of the class"},
    table=TableWords(shares="share|explained"),
    drawing=Drawing(
        draw_modes, "Some images, and the mean heatmap (orange: for the class, blue: against) of", padded=True
    ),
    figure=plot_modes,
    cost=read_each_layer,
)
def modes(
    inspected: LayerInspection,
    progress: Progress,
    *,
    of: ClassName = TOP,
    count: int = COUNT,
    sparsity: float = 0.1,
    beta: float = 1.0,
) -> pd.DataFrame:
    """Find the modes in which the network predicts a class: groups of images with the same reasons in a layer.

    Decision trees of Zhang et al. 2019 (arXiv:1802.00121). ``channels`` have weight in a mode, ``strongest``
    first; ``explained`` is the share of the variance of the class's logit among a mode's images that they explain.
    The drawings show a mode's images and its mean heatmap: the weighted sum of the channels.

    Parameters
    ----------
    count
        Largest number of images of the class, and of images of all others.
    sparsity
        Penalty on the channels' weights (lambda), as a share of the least one with which no channel has weight: the
        higher, the fewer channels have weight in a mode.
    beta
        Penalty for each mode, in units of log-likelihood (beta): the higher, the fewer modes.
    """
    classifier = inspected.classifier
    predicted = classifier.logits(inspected.inputs).argmax(1)
    k = resolve_class(classifier, of, predicted)
    own, others = (torch.nonzero(is_own)[:count, 0] for is_own in (predicted == k, predicted != k))
    if len(own) < 2:
        raise ForetellError(
            f"{len(own)} of {len(predicted)} images are predicted to be {classifier.names.short[k]}: modes need "
            "2 or more, so give more images, or another class."
        )
    rows = torch.cat([own, others])
    layer = inspected.request.layers[0] if inspected.request.layers else _choose_layer(inspected, own[:8], k)
    reading = _read(classifier, inspected.inputs[rows], k, layer)
    evidence = ModeEvidence(
        reading.activation.mean((2, 3)).double().numpy(),
        reading.gradient.sum((2, 3)).double().numpy(),
        reading.logits[:, k].double().numpy(),
        (np.arange(len(rows)) < len(own)),
    )
    decision_modes = find_modes(evidence, sparsity=sparsity, beta=beta, progress=progress)
    inspected.kept["modes"] = ReadModes(decision_modes, tuple(rows.tolist()), reading.activation)
    name = classifier.names.short[k]
    table = [
        [name, layer, i, *_tell_mode(evidence, decision_modes, i - 1)] for i in range(1, len(decision_modes.modes) + 1)
    ]
    return pd.DataFrame(
        table, columns=["class", "layer", "mode", "images", "share", "channels", "strongest", "explained"]
    )


def compute_mean_heatmap(read: ReadModes, i: int) -> Tensor:
    """Compute the sum of the channels, weighted by the mode, averaged over its images (h, w)."""
    mode = read.decision_modes.modes[i]
    weights = torch.from_numpy(mode.weights).float()
    return torch.einsum("k,nkhw->hw", weights, read.maps[list(mode.images)]) / len(mode.images)


def _tell_mode(evidence: ModeEvidence, decision_modes: DecisionModes, i: int) -> list[object]:
    mode = decision_modes.modes[i]
    own = list(mode.images)
    weights = np.abs(mode.weights)
    used = int((weights > 0).sum())
    strongest = ", ".join(str(d) for d in (-weights).argsort(kind="stable")[: min(STRONGEST, used)])
    logits = evidence.logits[own]
    left = logits - evidence.features[own] @ mode.weights - mode.bias
    explained = 1 - float(left.var() / logits.var()) if logits.var() > 0 else None
    return [len(own), len(own) / int(evidence.predicted.sum()), used, strongest, explained]


def _read(classifier: Classifier, inputs: Tensor, k: int, layer: str) -> Reading:
    batches = torch.split(inputs, chunk_size(inputs[0], classifier.device))
    parts = [activation_and_gradient(classifier, part, torch.full((len(part),), k), layer) for part in batches]
    return Reading(*(torch.cat(values) for values in zip(*parts, strict=True)))


def _choose_layer(inspected: LayerInspection, own: Tensor, k: int) -> str:
    """Choose the last block with places whose gradients differ between images: otherwise all have the same reasons."""
    classifier = inspected.classifier
    for layer in reversed(blocks(classifier)):
        if min(find_layer_shape(classifier, Unit(0, layer))[1:], default=1) < 2:
            continue
        gradients = _read(classifier, inspected.inputs[own], k, layer).gradient.sum((2, 3))
        if float(gradients.std(0).norm()) > VARYING * float(gradients.mean(0).norm()):
            return layer
    raise ForetellError(
        f"No layer of {classifier.name} has places and gradients that differ between the images predicted to be "
        f"{classifier.names.short[k]}: name a layer, or another class."
    )


def _draw(inspected: LayerInspection, read: ReadModes, i: int, mean: Tensor, scale: Scale) -> Image.Image:
    own = [read.rows[row] for row in read.decision_modes.modes[i].images[:SHOWN]]
    height = round(SIDE * inspected.inputs.shape[2] / inspected.inputs.shape[3])
    drawn = [inspected.classifier.render_input(inspected.inputs[row]).resize((SIDE, height)) for row in own]
    drawn.append(heatmap(mean, scale, (SIDE, height)))
    return tile_images(drawn, len(drawn))
