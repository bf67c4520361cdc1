"""The questions `probes` and `information` of `inquiry.layers`: what do layers tell of labels and images?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from core.layers.information import compute_input_information, compute_label_information
from core.layers.layers import maps_of, means_of
from core.layers.probe import compare_probes, linear_probe, perceptron_probe
from core.types import Progress
from data.types import ImageSet
from inquiry.layers.costs import PlannedQuestion, Work, read_each_layer
from inquiry.layers.figures import add_limits
from inquiry.layers.inspection import LayerInspection, blocks
from inquiry.layers.record import Topic, layer_question
from study import plots

PLACES = 4
"""Largest side of the grid of places at which one layer is reconstructed from another."""
PIXELS = 8
"""Side of the grid of mean colours that represents the image when its information is measured."""
Z = 1.96


def plot_probes(table: pd.DataFrame) -> go.Figure:
    """Draw the accuracy of the probes by layer, with chance as a dotted line."""
    figure = plots.intervals(table, x="layer", y="accuracy", by="of", title="Probe accuracy", percent=True)
    return add_limits(figure, table.groupby("of", sort=False)["chance"].first(), "chance")


PROBE_S, PERCEPTRON = 0.007, 2.5
"""Seconds of a linear probe of a layer per image, about, and how many times longer a perceptron takes."""


def read_and_probe(planned: PlannedQuestion, given: Mapping[str, Any]) -> Work:
    """Read every layer once, and train probes of it, which take the same time whatever the speed of the network."""
    layers = len(planned.query.layers) or len(blocks(planned.classifier))
    seconds = PROBE_S * layers * planned.image_count * (PERCEPTRON if int(given.get("hidden", 0)) else 1)
    return replace(read_each_layer(planned, given), seconds=seconds)


@layer_question(
    topic=Topic.REPRESENTATIONS,
    asks="what each layer encodes",
    reading=(
        "Accuracy of a probe by layer, with 95% intervals over held-out images. The dotted line is "
        "chance. A perceptron with 0 hidden units is a linear probe."
    ),
    publications={
        "Alain & Bengio 2016": "https://arxiv.org/abs/1610.01644",
        "Fuchs et al. 2018": "https://arxiv.org/abs/1806.05502",
    },
    layered=True,
    figure=plot_probes,
    cost=read_and_probe,
)
def probes(inspected: LayerInspection, progress: Progress, *, hidden: int = 0) -> pd.DataFrame:
    """Measure how well a probe of each layer finds the category and, if known, the context.

    The probe is linear, or with ``hidden`` above 0 a perceptron (an analytic neural stethoscope). Then the columns
    ``linear`` and ``p_value`` compare it with the linear one: its accuracy, and McNemar's exact test of the images that
    only one of the two reads correctly.

    Parameters
    ----------
    hidden
        Hidden units of the probe, a perceptron; 0 for a linear probe.
    """
    labels = _list_labels(inspected.images)
    rows = []
    for layer in inspected.layers:
        features = means_of(inspected.classifier, inspected.inputs, layer)
        for of, known in labels.items():
            linear = probe = linear_probe(features, known, generator=inspected.generator())
            if hidden:
                probe = perceptron_probe(features, known, hidden=hidden, generator=inspected.generator())
            own = [layer, of, features.shape[1], probe.accuracy, probe.low, probe.high, probe.chance]
            rows.append([*own, linear.accuracy, compare_probes(probe, linear, known).p_value])
            progress(len(rows), len(inspected.layers) * len(labels), "training probes")
    names = ["layer", "of", "channels", "accuracy", "low", "high", "chance", "linear", "p_value"]
    table = pd.DataFrame(rows, columns=names)
    return table if hidden else table.drop(columns=["linear", "p_value"])


def _list_labels(images: ImageSet) -> dict[str, Tensor]:
    """Return the category (N,) and, if known, the context of each image."""
    labels = {"category": torch.from_numpy(np.asarray(images.labels))}
    if images.contexts is not None:
        labels["context"] = torch.from_numpy(np.unique(images.contexts, return_inverse=True)[1])
    return labels


def plot_information(table: pd.DataFrame) -> go.Figure:
    """Draw the bits by layer; dotted, the entropy of each label, the most that is possible."""
    figure = plots.intervals(table, x="layer", y="bits", by="of", title="Information, bits", percent=False)
    return add_limits(figure, table.groupby("of", sort=False)["most"].first(), "entropy")


@layer_question(
    topic=Topic.REPRESENTATIONS,
    asks="bits about label and image",
    reading=(
        "Information in each layer, in bits, with 95% intervals: about the labels a lower bound, at most "
        "their entropy (the dotted line); about the image an estimate."
    ),
    publications={"Darlow & Storkey 2020": "https://arxiv.org/abs/2003.01687"},
    layered=True,
    figure=plot_information,
    cost=read_and_probe,
)
def information(inspected: LayerInspection, progress: Progress) -> pd.DataFrame:
    """Measure how many bits each layer tells about the category, the context and the image itself.

    About labels it is a lower bound, by a linear probe; about the image an estimate, by a linear decoder of its
    principal components.
    """
    labels = _list_labels(inspected.images)
    pixels = adaptive_avg_pool2d(inspected.inputs, PIXELS).flatten(1)
    rows = []
    for layer in inspected.layers:
        maps = maps_of(inspected.classifier, inspected.inputs, layer)
        told = {
            of: compute_label_information(maps.mean((2, 3)), known, generator=inspected.generator())
            for of, known in labels.items()
        }
        side = min(maps.shape[2], PLACES), min(maps.shape[3], PLACES)
        places = adaptive_avg_pool2d(maps, side).flatten(1)
        told["image"] = compute_input_information(places, pixels, generator=inspected.generator())
        for of, one in told.items():
            most = one.most if np.isfinite(one.most) else None
            high = min(one.bits + Z * one.error, one.most)
            rows.append([layer, of, one.bits, one.bits - Z * one.error, high, most])
        progress(len(rows) // len(told), len(inspected.layers), "measuring information")
    return pd.DataFrame(rows, columns=["layer", "of", "bits", "low", "high", "most"])
