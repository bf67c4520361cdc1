"""The question `x_features` of `inquiry.layers`: which few features explain a class's logit?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from torch import Tensor

from core.attribution.places.place import enlarge_maps, select_layer
from core.concepts.x_feature_measures import (
    FAITHFUL,
    FEW,
    Faithfulness,
    compute_locality,
    divide_images,
    match_features,
    measure_faithfulness,
    measure_orthogonality,
)
from core.concepts.x_features import XFeatures, XFeatureSettings, check_settings, fit_x_features
from core.drawing.views import view
from core.errors import ForetellError
from core.layers.layers import maps_of, means_of
from core.types import Progress
from inquiry.files.targets import TOP, ClassName, resolve_class
from inquiry.layers.costs import read_each_layer
from inquiry.layers.explanations.x_feature_heatmaps import (
    Heatmap,
    JudgedFeatures,
    check_heatmap,
    draw_heatmaps,
    draw_x_features,
)
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.record import Drawing, TableWords, Topic, layer_question
from study import plots

LEAST = 20
"""Images, of which a third is held out."""
AGREEING = 0.9
"""Correlation below which an x-feature is reported as one that another random seed does not find."""
CELLS = 4
"""Largest side of the grid of cells over which the heatmaps' locality is measured."""
COLUMNS = (
    "class",
    "layer",
    "x_feature",
    "images",
    "explained",
    "explained_class",
    "error",
    "same",
    "reconstruction",
    "reconstructed",
    "o1",
    "o2",
    "adds",
    "locality",
    "on_object",
    "agreement",
)


def plot_x_features(table: pd.DataFrame) -> go.Figure:
    """Draw what each x-feature adds to the logit of images of the class, more than to that of others."""
    each = table[table["x_feature"] != "all"]
    names = "x-feature " + each["x_feature"]
    figure = go.Figure(go.Bar(x=names, y=each["adds"], marker={"color": plots.PALETTE[0]}))
    return plots.apply_layout(figure, f"Added to the logit of {table['class'].iloc[0]}", percent=False)


@layer_question(
    topic=Topic.EXPLANATIONS,
    asks="few features behind a class",
    reading="What each x-feature adds to the logit of held-out images of the class, more than to that of others.",
    publications={"Qi et al. 2018": "https://arxiv.org/abs/1709.05360"},
    layered=True,
    labels={
        "beta": "Weight of the reconstruction (beta)",
        "eta": "Weight of decorrelation (eta)",
        "features": "Number of x-features",
        "weights": "Signs of the weights",
    },
    table=TableWords(shares="explained|explained_class|same|on_object", noted="x_feature"),
    drawing=Drawing(
        draw_x_features, "Held-out images of the class, and which places speak for it (orange) or against it (blue) by"
    ),
    figure=plot_x_features,
    cost=read_each_layer,
)
def x_features(
    inspected: LayerInspection,
    progress: Progress,
    *,
    of: ClassName = TOP,
    features: int = 3,
    encoder: Literal["rectified", "linear"] = "rectified",
    hidden: int = 0,
    weights: Literal["of either sign", "supporting"] = "of either sign",
    beta: float = 0.3,
    q: float = 10.0,
    eta: float = 0.1,
    heatmap: Heatmap = "gradient_x_activation",
    heatmap_layer: str = "",
) -> pd.DataFrame:
    """Find a few features of a layer that explain the logit of a class, each with its heatmaps.

    Sparse reconstruction autoencoder of Qi et al. 2018 (arXiv:1709.05360), fitted to the channels' means over places
    in two thirds of the images and judged on the others.
    The first row is about all x-features: the share of the logit's variance that they explain among the held-out
    images and among those of the class, the mean ``error`` in logits, the share of images whose prediction is the
    ``same`` with their logit, the mean error of ``reconstruction`` in units of the variance and the number of channels
    ``reconstructed`` by half or more, and ``o1`` and ``o2``, 0 for uncorrelated x-features. Then each x-feature:
    what it ``adds`` to the logit of images of the class more than of others, and the ``locality`` of its heatmaps,
    the entropy over the cells of a grid, with the share ``on_object`` where the set records it. In generated sets
    ``do_FACTOR`` is what the x-feature adds to the logit of the class's held-out images less what it adds when the
    factor is set to another value. ``agreement`` is its correlation with its partner in the best fit of the other half
    of the random starts: how far another random seed changes the result. ``note`` warns where the x-features are not to
    be relied on. The drawings show the heatmaps of held-out images.

    Parameters
    ----------
    features
        Number of x-features, 1 to 20 (n).
    encoder
        Rectified: x-features are never negative. Linear: they may have either sign.
    hidden
        Units of the encoder's hidden layer; 0 for none.
    weights
        Signs of the x-features' weights in the logit: either, or supporting (never negative).
    beta
        Weight of the sparse reconstruction of the layer, compared with the error of the logit (beta).
    q
        Form of the sparse reconstruction, log(1 + q error) for each channel: the higher, the more it favours few
        channels restored well over many restored a little (q).
    eta
        Weight of the term that pulls x-features apart, so that they are uncorrelated (eta).
    heatmap
        Heatmaps of what each place adds to the logit through an x-feature, or of how much more likely a search down the
        network for the x-feature ends there than one for its opposite (Zhang et al. 2016, arXiv:1608.00507).
    heatmap_layer
        Layer in which contrastive excitation ends; by default the first block with places and without negative values.
    """
    settings = XFeatureSettings(features, hidden, encoder == "rectified", weights == "supporting", beta, q, eta)
    check_settings(settings)
    check_heatmap(heatmap, heatmap_layer)
    classifier, layer = inspected.classifier, _choose_layer(inspected)
    logits = classifier.logits(inspected.inputs)
    k = _choose_class(inspected, logits, of)
    fitted, judged = divide_images(logits.argmax(1) == k, inspected.generator())
    maps = maps_of(classifier, inspected.inputs, layer)
    embedding = maps.mean((2, 3))
    decoded = fit_x_features(
        embedding[fitted], logits[fitted, k], settings, generator=inspected.generator(), progress=progress
    )
    own = judged[logits[judged].argmax(1) == k]
    read = draw_heatmaps(inspected, decoded, tuple(own.tolist()), maps[own], layer, heatmap, heatmap_layer)
    inspected.kept["x_features"] = read
    name = classifier.names.short[k]
    rows = [_describe_all(decoded, embedding, logits, judged, k, name)]
    rows += [
        _describe_one(inspected, read, embedding[judged], logits[judged].argmax(1) == k, i) for i in range(features)
    ]
    report_agreement(rows[1:], decoded, embedding[judged])
    changes = measure_changes(inspected, read, layer)
    for row, effects in zip(rows[1:], changes, strict=True):
        row.update(effects)
    traced = {"heatmap_layer": read.layer} if heatmap == "contrastive_excitation" else {}
    table = [{"class": name, "layer": layer, **row, **traced} for row in rows]
    return pd.DataFrame(table, columns=[*COLUMNS, *traced, *(changes[0] if changes else {}), "note"])


def _choose_layer(inspected: LayerInspection) -> str:
    asked = inspected.request.layers
    if len(asked) > 1:
        raise ForetellError(
            f"x-features are of one layer, and {', '.join(asked)} are {len(asked)}: choose one of them."
        )
    return asked[0] if asked else select_layer(inspected.classifier, "")


def _choose_class(inspected: LayerInspection, logits: Tensor, of: str) -> int:
    predicted = logits.argmax(1)
    k = resolve_class(inspected.classifier, of, predicted)
    count, name = int((predicted == k).sum()), inspected.classifier.names.short[k]
    if len(predicted) < LEAST:
        raise ForetellError(
            f"x-features are fitted to two thirds of the images and judged on the others, and {len(predicted)} images "
            f"are too few: give {LEAST} or more."
        )
    if count < 2 or count == len(predicted):
        raise ForetellError(
            f"{count} of {len(predicted)} images are predicted to be {name}: x-features compare 2 or more images of a "
            "class with others, so give more images, or another class."
        )
    return k


def _describe_all(
    decoded: XFeatures, embedding: Tensor, logits: Tensor, judged: Tensor, k: int, name: str
) -> dict[str, object]:
    """Return the row about all x-features, on held-out images."""
    z, own = embedding[judged], logits[judged].argmax(1) == k
    every = measure_faithfulness(decoded.predict(z), logits[judged], k)
    alone = measure_faithfulness(decoded.predict(z[own]), logits[judged][own], k)
    errors = decoded.compute_errors(z)
    o1, o2 = measure_orthogonality(decoded.encode(z))
    return {
        "x_feature": "all",
        "images": len(judged),
        "explained": every.explained,
        "explained_class": alone.explained if int(own.sum()) > 1 else None,
        "error": every.error,
        "same": every.same,
        "reconstruction": float(errors.mean()),
        "reconstructed": int((errors <= 0.5).sum()),
        "o1": o1,
        "o2": o2,
        "note": warn_of(every, alone, int(own.sum()), name),
    }


def warn_of(every: Faithfulness, alone: Faithfulness, images: int, name: str) -> str | None:
    """Warn of x-features that explain little on held-out images, all or those of the class."""
    if not every.explained >= FAITHFUL:
        return (
            f"Low fidelity: on held-out images the x-features explain {max(every.explained, 0):.0%} of the variance of "
            f"the logit of {name}. They are not the network's reasons: take more x-features, more images, or a later "
            "layer."
        )
    if images < FEW:
        return f"Only {images} held-out images are predicted to be {name}: give more images for reliable numbers."
    if not alone.explained >= FAITHFUL:
        return (
            f"The x-features tell {name} from other classes, but explain {max(alone.explained, 0):.0%} of the variance "
            f"among held-out images predicted to be {name}: they do not say why one of these has a higher logit."
        )
    return None


def _describe_one(
    inspected: LayerInspection, read: JudgedFeatures, embedding: Tensor, own: Tensor, i: int
) -> dict[str, object]:
    """Return the row of one x-feature, on held-out images."""
    values = read.x_features.encode(embedding)[:, i] * read.x_features.weights[i]
    maps = read.weigh_places(i)
    return {
        "x_feature": str(i + 1),
        "images": int((values != 0).sum()),
        "adds": float(values[own].mean() - values[~own].mean()),
        "locality": measure_locality(maps),
        "on_object": measure_share_on_object(inspected, read.rows, maps),
        "note": _note_feature(values[own], float(read.x_features.weights[i])),
    }


def _note_feature(values: Tensor, weight: float) -> str | None:
    if not bool(values.any()):
        return "This x-feature is 0 in all held-out images of the class."
    return "It lowers the logit: images of the class are those that have less of it." if weight < 0 else None


def report_agreement(rows: Sequence[dict[str, object]], decoded: XFeatures, embedding: Tensor) -> None:
    """Add to each x-feature's row its correlation with its partner in the rival fit, and warn where it is low.

    Over images with this embedding (M, S); without a rival nothing is added.
    """
    if decoded.rival is None:
        return
    adds, rival = (one.encode(embedding) * one.weights for one in (decoded, decoded.rival))
    for row, value in zip(rows, match_features(adds, rival).tolist(), strict=True):
        row["agreement"] = value
        if value < AGREEING and row["note"] is None:
            row["note"] = (
                f"Other random starts find no such x-feature (correlation {value:.2f}): x-feature {row['x_feature']} "
                "is one of several that would explain the logit."
            )


def measure_changes(inspected: LayerInspection, read: JudgedFeatures, layer: str) -> list[dict[str, float]]:
    """Measure, for each x-feature, how its part of the logit falls when a factor is set to another value at random.

    By factor of a generated set, the mean over the held-out images of the class; empty for other sets.
    """
    classifier, decoded = inspected.classifier, read.x_features
    changes: list[dict[str, float]] = [{} for _ in decoded.weights]
    before = decoded.encode(means_of(classifier, inspected.inputs[list(read.rows)], layer)) * decoded.weights
    for name, factor in inspected.images.factors.items():
        draws = np.random.default_rng(inspected.request.seed)
        inputs = []
        for row in read.rows:
            own = None if factor.known is None else factor.known[row]
            other = str(draws.choice([value for value in factor.values if value != own]))
            inputs.append(classifier.preprocess(factor.do(row, other)))
        after = decoded.encode(means_of(classifier, torch.stack(inputs), layer)) * decoded.weights
        for change, value in zip(changes, (before - after).mean(0).tolist(), strict=True):
            change[f"do_{name}"] = value
    return changes


def measure_locality(maps: Tensor) -> float | None:
    """Measure the mean entropy of heatmaps (N, h, w), not negative, over the cells of a grid; None without places.

    The document's parts are annotated and the histogram is that of all images; a cell has no meaning across images,
    so that here each image has its own.
    """
    grid = (min(CELLS, maps.shape[1]), min(CELLS, maps.shape[2]))
    if grid == (1, 1):
        return None
    cells = torch.nn.functional.adaptive_avg_pool2d(maps[:, None], grid).flatten(1)
    entropies = compute_locality(cells[cells.sum(1) > 0])
    return float(entropies.mean()) if len(entropies) else None


def measure_share_on_object(inspected: LayerInspection, rows: Sequence[int], maps: Tensor) -> float | None:
    """Measure the mean share of heatmaps (N, h, w) on the object, as far as the network's input shows it.

    None for sets that do not record where the object is, without places, and where the input's place in the image is
    not known.
    """
    mask = inspected.images.mask
    if mask is None or maps.shape[1:].numel() == 1:
        return None
    height, width = inspected.inputs.shape[2:]
    large = enlarge_maps(maps, inspected.inputs[list(rows)])
    shares = []
    for row, one in zip(rows, large.double(), strict=True):
        seen = view(inspected.classifier, inspected.images.open(row), inspected.inputs[row])
        inside = torch.from_numpy(seen.cut(np.asarray(mask(row), dtype=bool), (width, height)))
        if float(one.sum()) > 0 and seen.geometry is not None:
            shares.append(float(one[inside].sum() / one.sum()))
    return math.fsum(shares) / len(shares) if shares else None
