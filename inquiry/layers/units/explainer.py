"""The question `explainer` of `inquiry.layers`: which features of one part can restore a layer?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from scipy.special import stdtrit
from torch import Tensor

from core.attribution.places.place import select_layer
from core.concepts.explainer import ExplainerSettings, check_settings, train_explainer
from core.concepts.explanatory_graph import list_places
from core.concepts.part_measures import measure_instability
from core.drawing.views import view
from core.errors import ForetellError
from core.layers.layers import compute_logits_with, maps_of
from core.shares import share_of
from core.types import Progress
from inquiry.layers.costs import PlannedQuestion, Work
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.record import Drawing, TableWords, Topic, layer_question
from inquiry.layers.units.explainer_drawings import JudgedExplainer, choose_drawn, draw_explainer
from inquiry.layers.units.part_graph import find_landmarks
from study import plots

LEAST = 40
"""Images, of which a third is held out."""
TOP = 0.25
"""Share of the held-out images that a feature is judged on: those with the largest maxima of its channel."""
AGREEING = 0.95
"""Share of images with the same prediction after restoration below which the explainer is not to be relied on."""
COLUMNS = (
    "layer",
    "feature",
    "images",
    "p",
    "restored",
    "same",
    "same_low",
    "same_high",
    "instability",
    "instability_channel",
    "instability_fixed",
    "purity",
    "purity_channel",
    "part",
    "note",
)
JUDGED = ("instability", "purity")


def plot_explainer(table: pd.DataFrame) -> go.Figure:
    """Draw the instability of each feature against that of its channel, with the line where they are equal."""
    each = table[table["feature"] != "all"].dropna(subset=["instability"])
    if each.empty:
        first = table.iloc[0]
        figure = go.Figure(go.Bar(x=["p", "restored", "same"], y=[first[name] for name in ("p", "restored", "same")]))
        return plots.apply_layout(figure.update_traces(marker={"color": plots.PALETTE[0]}), "Share", percent=True)
    names = "feature " + each["feature"]
    dots = {"x": each["instability_channel"], "y": each["instability"], "text": names}
    figure = go.Figure(go.Scatter(**dots, mode="markers", marker={"color": plots.PALETTE[0]}))
    ends = [0, float(each[["instability", "instability_channel"]].to_numpy().max())]
    figure.add_scatter(x=ends, y=ends, mode="lines", line=plots.DOTTED, hoverinfo="skip")
    figure = plots.apply_layout(figure, "Instability of the feature", percent=False).update_layout(showlegend=False)
    return figure.update_xaxes(title="Instability of the channel")


TRAINED = 32
"""Gradients of one image that a step of an explainer costs, about."""


def train_each_step(planned: PlannedQuestion, given: Mapping[str, Any]) -> Work:
    """Read the layer, and train the explainer step by step."""
    return Work(2 * planned.image_count, TRAINED * int(given["steps"]))


@layer_question(
    topic=Topic.UNITS,
    asks="features of one part each",
    reading=(
        "How unsteadily each channel, and the feature that replaces it, is placed on the object "
        "(location instability). Below the line, the feature is steadier."
    ),
    publications={"Zhang et al. 2018": "https://arxiv.org/abs/1805.07468"},
    layered=True,
    labels={
        "eta": "Weight of the interpretable share (eta)",
        "filters": "Weight of the filter loss (lambda)",
        "steps": "Training steps",
    },
    table=TableWords(headings={"p": "Interpretable share"}, shares="p|restored|same|purity|purity_channel|purity_less"),
    drawing=Drawing(
        draw_explainer,
        "Held-out images, the heatmap of a channel, and that of the feature that replaces it (last row):",
    ),
    figure=plot_explainer,
    cost=train_each_step,
)
def explainer(
    inspected: LayerInspection,
    progress: Progress,
    *,
    unit: int = -1,
    filters: float = 1.0,
    eta: float = 1.0,
    tau: float = 5.0,
    steps: int = 300,
) -> pd.DataFrame:
    """Learn features that each detect one part, from which the outputs of a layer can be restored.

    Explainer network of Zhang et al. 2018 (arXiv:1805.07468), trained with two thirds of the images and judged on the
    others; feature k starts as channel k. The first row is about all features: ``p``, the share of the interpretable
    features in what the layer is restored from, the share of its variance that is ``restored``, and the share of images
    with the ``same`` prediction afterwards, with Wilson's 95% interval. ``instability`` is how much the distance from a
    feature's maximum to the object's centre and corners varies over the quarter of the images with the largest maxima
    of its channel, next to that of the channel and of a fixed place; ``purity`` is the share of these images with the
    maximum on the ``part`` most often hit, where the set records these. ``_less`` are mean differences from the
    channels, paired by feature, with a 95% interval (*t*). ``note`` warns where the features are not to be relied on.
    The drawings show a channel and, below, its feature.

    Parameters
    ----------
    unit
        Channel that is drawn, from 0; -1 for those whose features became most steady.
    filters
        Weight of the filter loss, by which each feature detects one part (lambda).
    eta
        Weight of -log p, which raises the share p of the interpretable features (eta).
    tau
        Height of the templates of one part that the filter loss compares features with (tau).
    steps
        Steps of training.
    """
    settings = ExplainerSettings(filters=filters, eta=eta, tau=tau, steps=steps)
    check_settings(settings)
    layer = _choose_layer(inspected)
    maps = maps_of(inspected.classifier, inspected.inputs, layer)
    if not -1 <= unit < maps.shape[1]:
        raise ForetellError(f"unit={unit}: {layer} has the channels 0 to {maps.shape[1] - 1}; -1 chooses some.")
    predicted = inspected.classifier.logits(inspected.inputs).argmax(1)
    order = torch.randperm(len(maps), generator=inspected.generator())
    held = len(order) // 3
    judged, fitted = order[:held].sort().values, order[held:].sort().values
    trained = train_explainer(
        maps[fitted], predicted[fitted], settings, generator=inspected.generator(), progress=progress
    )
    own = JudgedExplainer(layer, trained, tuple(judged.tolist()), maps[judged], trained.read_features(maps[judged]))
    rows = describe_features(own, find_landmarks(inspected, own.rows), find_named_parts(inspected, own.rows))
    first = _describe_all(inspected, own, predicted[judged], pd.DataFrame(rows))
    drawn = (unit,) if unit >= 0 else choose_drawn(pd.DataFrame(rows))
    inspected.kept["explainer"] = JudgedExplainer(layer, trained, own.rows, own.maps, own.features, drawn)
    table = pd.DataFrame([{"layer": layer, **row} for row in (first, *rows)])
    extra = [name for name in table.columns if name not in COLUMNS]
    return table.reindex(columns=[*COLUMNS[:-1], *extra, COLUMNS[-1]])


def _choose_layer(inspected: LayerInspection) -> str:
    asked, count = inspected.request.layers, len(inspected.images)
    if len(asked) > 1:
        raise ForetellError(f"An explainer is of one layer, and {', '.join(asked)} are {len(asked)}: choose one.")
    if count < LEAST:
        raise ForetellError(
            f"An explainer is trained with two thirds of the images and judged on the others, and {count} images are "
            f"too few: give {LEAST} or more."
        )
    return asked[0] if asked else select_layer(inspected.classifier, "")


def find_named_parts(inspected: LayerInspection, rows: Sequence[int]) -> tuple[list[np.ndarray], list[str]] | None:
    """Find the number of the part at each pixel (H, W) of inputs, and the parts' names; None where unrecorded.

    -1 where it is not known.
    """
    known = inspected.images.parts
    if known is None:
        return None
    height, width = inspected.inputs.shape[2:]
    numbers: dict[str, int] = {}
    parts = []
    for row in rows:
        seen = view(inspected.classifier, inspected.images.open(row), inspected.inputs[row])
        own, names = known(row)
        drawn = np.full((height, width), -1)
        for k, name in enumerate(names):
            drawn[seen.cut(own == k, (width, height))] = numbers.setdefault(name, len(numbers))
        parts.append(drawn)
    return parts, list(numbers)


def describe_features(
    own: JudgedExplainer, landmarks: Tensor | None, named: tuple[list[np.ndarray], list[str]] | None
) -> list[dict[str, object]]:
    """Return a row for each feature, on the held-out images with the largest maxima of its channel."""
    heights, channel = own.maps.flatten(2).max(2)
    feature = own.features.flatten(2).argmax(2)
    fixed = torch.full_like(feature, own.maps.shape[2] // 2 * own.maps.shape[3] + own.maps.shape[3] // 2)
    chosen = (heights >= heights.quantile(1 - TOP, 0)) & (heights > 0) & (own.features.amax((2, 3)) > 0)
    if landmarks is not None:
        chosen &= ~landmarks.isnan().any(2).any(1)[:, None]
    rows: list[dict[str, object]] = []
    for k in range(own.maps.shape[1]):
        among = torch.nonzero(chosen[:, k])[:, 0]
        row: dict[str, object] = {"feature": str(k), "images": len(among)}
        if len(among):
            for suffix, at in {"": feature, "_channel": channel, "_fixed": fixed}.items():
                row.update(_judge(own, at[among, k], among, landmarks, named, suffix))
        rows.append(row)
    return rows


def _judge(
    own: JudgedExplainer,
    at: Tensor,
    among: Tensor,
    landmarks: Tensor | None,
    named: tuple[list[np.ndarray], list[str]] | None,
    suffix: str,
) -> dict[str, object]:
    """Measure instability and purity of maxima in the cells ``at`` (n,) of the images ``among`` (n,)."""
    row: dict[str, object] = {}
    height, width = own.maps.shape[2:]
    if landmarks is not None:
        places = list_places(height, width)[at]
        row[f"instability{suffix}"] = measure_instability(places, landmarks[among])[0]
    if named is not None and suffix != "_fixed":
        hits = [_find_part(named[0][i], cell, (height, width)) for i, cell in zip(among, at.tolist(), strict=True)]
        counts = np.bincount([hit for hit in hits if hit >= 0], minlength=1)
        row[f"purity{suffix}"] = counts.max() / len(hits)
        if not suffix:
            row["part"] = named[1][int(counts.argmax())]
    return row


def _find_part(parts: np.ndarray, cell: int, grid: tuple[int, int]) -> int:
    """Return the part that covers most of a cell of a grid (rows, columns) over an input; -1 where none is known."""
    row, column = divmod(cell, grid[1])
    (y, x), (height, width) = parts.shape, grid
    inside = parts[row * y // height : (row + 1) * y // height, column * x // width : (column + 1) * x // width]
    known = inside[inside >= 0]
    return int(np.bincount(known).argmax()) if len(known) else -1


def _describe_all(
    inspected: LayerInspection, own: JudgedExplainer, predicted: Tensor, each: pd.DataFrame
) -> dict[str, object]:
    """Return the row about all features."""
    restored = own.trained.restore(own.maps)
    logits = compute_logits_with(inspected.classifier, inspected.inputs[list(own.rows)], own.layer, restored)
    same = share_of(int((logits.argmax(1) == predicted).sum()), len(predicted))
    variance = (own.maps - own.maps.mean((0, 2, 3), keepdim=True)).square().sum()
    row: dict[str, object] = {"feature": "all", "images": len(own.rows), "p": own.trained.share}
    row["restored"] = 1 - float((restored - own.maps).square().sum() / variance.clamp(min=1e-12))
    row |= {"same": same.value, "same_low": same.low, "same_high": same.high}
    for name in each.columns.intersection([*COLUMNS[8:13]]):
        row[name] = each[name].mean()
    for name in each.columns.intersection(list(JUDGED)):
        limits = estimate_difference(each[name] - each[f"{name}_channel"])
        row |= dict(zip((f"{name}_less", f"{name}_less_low", f"{name}_less_high"), limits, strict=True))
    row["note"] = " ".join(warn_of(row)) or None
    return row


def estimate_difference(differences: pd.Series) -> tuple[float, float, float]:
    """Return the mean of differences, paired by feature, and its 95% interval by Student's *t*."""
    known = differences.dropna().to_numpy(dtype=float)
    if len(known) < 2:
        return (float(known.mean()) if len(known) else math.nan, math.nan, math.nan)
    half = stdtrit(len(known) - 1, 0.975) * known.std(ddof=1) / math.sqrt(len(known))
    return float(known.mean()), float(known.mean() - half), float(known.mean() + half)


def warn_of(row: dict[str, object]) -> list[str]:
    """Warn of a restoration that changes predictions, and of features that are no better than channels."""
    numbers = {name: float(value) for name, value in row.items() if isinstance(value, int | float)}
    notes = []
    if numbers["same"] < AGREEING:
        notes.append(
            f"After restoration {numbers['same']:.0%} of the predictions are the same: the features leave out what the "
            "network uses. Take more steps, more images, or a smaller eta."
        )
    if numbers.get("instability_less_high", -1) >= 0:
        notes.append("The features are no steadier on the object than the channels.")
    if numbers.get("instability", 0) >= numbers.get("instability_fixed", 1):
        notes.append("The features do not follow the object: a fixed place is as steady on it.")
    if numbers.get("purity_less_low", 1) <= 0:
        notes.append("The features do not meet one part more often than the channels do (purity).")
    return notes
