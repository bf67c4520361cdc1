"""The question `decomposition` of `inquiry.layers`: what are the images made of, learned without labels?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from PIL import ImageOps
from scipy.ndimage import gaussian_filter
from scipy.special import stdtrit
from torch import Tensor

from core.concepts.deconvolution import DeconvolutionSettings, LayerStack, add_layer, decompose, draw_filters
from core.errors import ForetellError
from core.types import Progress
from data.types import ImageSet
from inquiry.concepts.interventions import draw_rows
from inquiry.layers.costs import CostRule, PlannedQuestion, Work
from inquiry.layers.images.learned_filters import LearnedStack, draw_decomposition
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.record import Drawing, TableWords, Topic, layer_question
from study import plots

LEAST = 9
"""Images, of which a third is held out."""
BLUR = 12
"""The local mean that is subtracted is a Gaussian one, whose standard deviation is the side divided by this."""
STRONGEST = 3
"""Held-out images that are named for each filter."""
COLUMNS = ("layer", "filter", "lost", "lost_error", "lost_random", "random_error", "active", "images", "share",
           "strongest", "note")  # fmt: skip
FilterCounts = Annotated[str, "Number of filters of each layer, separated by commas, from the first layer up."]
ImageSide = Annotated[int, "Side of the images, px: they are cut square and shrunk."]
FilterSide = Annotated[int, "Side of a filter, in places of the layer below."]
ErrorWeight = Annotated[
    float, "Price of the error compared with that of activations (lambda), halved from layer to layer."
]
Epochs = Annotated[int, "Passes over the images, each with one update of the filters."]


def plot_decomposition(table: pd.DataFrame) -> go.Figure:
    """Draw the share of the contrast's energy that each layer does not rebuild, learned and with random filters."""
    each = table[table["filter"] == "all"]
    figure = go.Figure()
    for k, (name, error) in enumerate({"lost": "lost_error", "lost_random": "random_error"}.items()):
        label = "learned filters" if name == "lost" else "random filters"
        bars = {"array": each[error], "color": plots.INK, "thickness": 1}
        figure.add_bar(x="layer " + each["layer"].astype(str), y=each[name], name=label, error_y=bars,
                       marker={"color": plots.PALETTE[k]})  # fmt: skip
    return plots.apply_layout(figure, "Energy lost", percent=True)


EPOCHS = 8
"""Epochs of the seconds from which the time of learning filters is estimated."""


def estimate_learning(seconds: float, side: int) -> CostRule:
    """Return the cost of learning filters, without the network: about ``seconds`` for each image of that side, px."""

    def learn(planned: PlannedQuestion, given: Mapping[str, Any]) -> Work:
        images = min(planned.image_count, int(given["images"]))
        return Work(seconds=seconds * images * (int(given["side"]) / side) ** 2 * int(given["epochs"]) / EPOCHS)

    return learn


@layer_question(
    topic=Topic.IMAGE_SET,
    asks="what images are made of",
    reading=(
        "Share of the energy of held-out images that a layer does not rebuild, ± standard error; of "
        "random filters, that of the difference. The network is not used."
    ),
    publications={"Zeiler, Taylor & Fergus 2011": "https://doi.org/10.1109/ICCV.2011.6126474"},
    table=TableWords(shares="lost|lost_random|random|active|share"),
    drawing=Drawing(
        draw_decomposition,
        "The largest activation of each filter in held-out images, as pixels, next to that part of the image:",
        captions={
            "images as rebuilt": "Some held-out images, and below each as every layer rebuilds it, the first layer "
            "first."
        },
    ),
    figure=plot_decomposition,
    cost=estimate_learning(0.2, 48),
)
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
