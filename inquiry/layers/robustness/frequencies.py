"""Questions of `inquiry.layers` about spatial frequencies: accuracy, and margins by band."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray
from scipy.stats import binom

from core.robustness.bands import band_margins, dct_bands
from core.robustness.frequencies import accuracy_by_radius
from core.shares import share_of
from core.types import Progress
from inquiry.layers.costs import PlannedQuestion, Work
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.lists import count_listed, read_numbers
from inquiry.layers.record import TableWords, Topic, layer_question
from inquiry.layers.robustness.attacks import WALK, ImageCount, select_labelled
from study import plots


def plot_frequencies(table: pd.DataFrame) -> go.Figure:
    """Draw the accuracy on the low and on the high frequencies; dotted, on whole images."""
    parts = [
        pd.DataFrame(
            {"cycles": table["cycles"], "part": label, "right": table[name]}
            | {end: table[f"{name}_{end}"] for end in ("low", "high")}
        )
        for name, label in (("coarse", "low frequencies"), ("fine", "high frequencies"))
    ]
    radius = "Cut-off, cycles per image"
    figure = plots.curves(pd.concat(parts), x="cycles", y="right", by="part", title="Accuracy", x_title=radius)
    return figure.add_hline(y=float(table["whole"].iloc[0]), line=plots.DOTTED)


def predict_each_cut_off(planned: PlannedQuestion, given: Mapping[str, Any]) -> Work:
    """Predict the low and the high frequencies of each image at each cut-off."""
    return Work(2 * planned.image_count * count_listed(given["radii"]))


@layer_question(
    topic=Topic.ROBUSTNESS,
    asks="accuracy by frequency",
    reading=(
        "Accuracy on the low and on the high spatial frequencies alone, by the cut-off between them, "
        "with 95% intervals. The dotted line is the accuracy on whole images."
    ),
    publications={"Wang et al. 2019": "https://arxiv.org/abs/1905.13545"},
    labels={"radii": "Cut-offs, cycles per image"},
    table=TableWords(
        headings={
            "cycles": "Cut-off, cycles",
            "coarse": "Low frequencies",
            "fine": "High frequencies",
            "whole": "Whole images",
        },
        shares="coarse|fine|whole",
    ),
    figure=plot_frequencies,
    cost=predict_each_cut_off,
)
def frequencies(inspected: LayerInspection, progress: Progress, *, radii: str = "2,4,8,12,16,24,32") -> pd.DataFrame:
    """Measure accuracy on the low and the high spatial frequencies of the images, by cut-off in cycles per image.

    Parameters
    ----------
    radii
        Cut-offs between low and high frequencies in cycles per image, separated by commas.
    """
    shown, classes = select_labelled(inspected)
    chosen = read_numbers("radii", radii)
    curve = accuracy_by_radius(
        inspected.classifier, inspected.inputs[shown], classes.tolist(), chosen, progress=progress
    )
    size = len(shown)
    table = pd.DataFrame({"cycles": chosen})
    for name, accuracy in (("coarse", curve.low), ("fine", curve.high)):
        limits = [share_of(round(float(share) * size), size) for share in accuracy]
        table[[name, f"{name}_low", f"{name}_high"]] = limits
    table["whole"] = curve.whole
    return table


def plot_bands(table: pd.DataFrame) -> go.Figure:
    """Draw the median margin by band of frequencies, with its interval."""
    centre = (table["low"] + table["high"]) / 2
    shown = pd.DataFrame({"cycles": centre, "margin": table["median"], "of": "median"})
    shown[["low", "high"]] = table[["median_low", "median_high"]].to_numpy()
    shown = shown[np.isfinite(shown["margin"])]
    title = "Smallest change that changes the prediction"
    x_title = "Changed frequencies, cycles per image"
    figure = plots.curves(shown, x="cycles", y="margin", by="of", title=title, x_title=x_title, percent=False)
    return figure.update_layout(showlegend=False)


def walk_each_band(planned: PlannedQuestion, given: Mapping[str, Any]) -> Work:
    """Walk from each image to the boundary in each band."""
    return Work(gradients=WALK // 3 * int(given["bands"]) * min(planned.image_count, int(given["images"])))


@layer_question(
    topic=Topic.ROBUSTNESS,
    asks="margins by frequency",
    reading=(
        "Median distance to another prediction when one band of frequencies alone may change, with its "
        "95% interval, in units of the network's input. Where it is small, predictions depend on these "
        "frequencies."
    ),
    publications={"Ortiz-Jimenez et al. 2020": "https://arxiv.org/abs/2002.06349"},
    table=TableWords(headings={"low": "From, cycles", "high": "To, cycles", "met": "Share met"}, shares="met"),
    figure=plot_bands,
    cost=walk_each_band,
)
def bands(
    inspected: LayerInspection, progress: Progress, *, images: ImageCount = 32, bands: int = 8, steps: int = 50
) -> pd.DataFrame:
    """Measure the distance to another prediction when only one band of frequencies may change, from coarse to fine.

    Ortiz-Jimenez et al. 2020 (arXiv:2002.06349), section 3.2: bands are blocks on the diagonal of the discrete cosine
    transform, ``low`` to ``high`` cycles per image, of ``dimension`` directions. ``median``, with the 95% interval of
    order statistics, and the 5th and 95th percentile are over the first images, in units of the network's input;
    infinite where no other prediction is met. ``met`` is the share in which one is.

    Parameters
    ----------
    bands
        Number of bands of frequencies.
    steps
        Steps of the search for another prediction, at most.
    """
    cut = dct_bands((inspected.inputs.shape[1], inspected.inputs.shape[2], inspected.inputs.shape[3]), bands)
    count = min(images, len(inspected.inputs))

    def walk_block(block: range) -> dict[str, NDArray[Any]]:
        return {
            "margins": band_margins(inspected.classifier, inspected.inputs[list(block)], bands, steps=steps).numpy()
        }

    columns = inspected.compute_blocks(walk_block, count, 1, progress, "walking to the boundary in bands")
    distances = np.sort(columns["margins"], axis=0)
    rows = [
        [k, band.low, band.high, band.dimension, *_median(own), *_percentiles(own), np.isfinite(own).mean(), count]
        for k, (band, own) in enumerate(zip(cut, distances.T, strict=True))
    ]
    names = ["low", "high", "dimension", "median", "median_low", "median_high", "p5", "p95", "met", "images"]
    return pd.DataFrame(rows, columns=["band", *names])


def _percentiles(ordered: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(ordered, [0.05, 0.95], method="inverted_cdf")
    return float(low), float(high)


def _median(ordered: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the median of ordered values and its 95% interval: two of them; 0 and infinite where they are too few."""
    size = len(ordered)
    place = int(binom.ppf(0.025, size, 0.5))
    middle = float(np.quantile(ordered, 0.5, method="inverted_cdf"))
    return (middle, float(ordered[place - 1]), float(ordered[size - place])) if place else (middle, 0.0, np.inf)
