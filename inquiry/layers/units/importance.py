"""The question `importance` of `inquiry.layers`: how much does each channel of a layer matter?"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from torch import Tensor

from core.attribution.maps.erasure import Units, relative_surprise, surprise
from core.attribution.places.place import select_layer
from core.errors import ForetellError
from core.types import Progress, silent
from inquiry.layers.costs import leave_out_each_unit
from inquiry.layers.figures import MOST_ROWS
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.record import TableWords, Topic, layer_question
from study import plots

BLOCK = 8
"""Images whose results are saved at a time."""
SMALLEST = torch.finfo(torch.float32).tiny
"""A -log p below this rounds to 0."""


def plot_importance(table: pd.DataFrame) -> go.Figure:
    """Draw the channels with the largest importance, with standard errors."""
    most = table.loc[table["importance"].abs().nlargest(MOST_ROWS).index]
    names = most["layer"] + ", " + most["channel"].astype(str)
    figure = go.Figure(go.Bar(x=names, y=most["importance"], marker={"color": plots.PALETTE[0]}))
    figure.update_traces(error_y={"array": most["error"], "color": plots.INK, "thickness": 1})
    return plots.apply_layout(figure, "Relative rise of −log p", percent=False)


@layer_question(
    topic=Topic.UNITS,
    asks="channels that matter most",
    reading=(
        "Mean relative rise of the negative log-likelihood (−log p) when a channel is set to 0, ± "
        "standard error, for the channels with the largest. Above 0, the channel supports the class."
    ),
    publications={"Li et al. 2016": "https://arxiv.org/abs/1612.08220"},
    layered=True,
    labels={"of": "Class whose −log p is measured"},
    table=TableWords(headings={"importance": "Relative rise of −log p", "error": "SE"}),
    figure=plot_importance,
    cost=leave_out_each_unit,
)
def importance(
    inspected: LayerInspection, progress: Progress, *, of: Literal["prediction", "label"] = "prediction"
) -> pd.DataFrame:
    """Measure how much each channel of a layer matters: the relative rise of -log p without it.

    -log p is the negative log-likelihood of the class: the ``prediction``, or the image's ``label``. Li et al. 2016
    (arXiv:1612.08220), eq. 1, its sign turned so that above 0 the channel supports the class. ``importance`` is the
    mean over images, with its standard error; ``median`` is less moved by images of which the network is almost
    certain. Images whose -log p rounds to 0 are left out; ``images`` counts the rest. The layer ``input`` has the
    channels of the network's input.

    Parameters
    ----------
    of
        Class whose negative log-likelihood (-log p) is measured: the prediction, or the image's label.
    """
    inputs, classes = _choose_images(inspected, of)
    sure = surprise(inspected.classifier.logits(inputs), classes) < SMALLEST
    inputs, classes = inputs[~sure], classes[~sure]
    if not len(inputs):
        raise ForetellError(
            f"{inspected.classifier.name} is so certain of all these images that their -log p rounds to 0, to which "
            "nothing is relative: use the question deletion."
        )
    tables = []
    for layer in inspected.request.layers or [select_layer(inspected.classifier, "")]:
        units = Units.of(inspected.classifier, layer, "channel")

        def erase_channels(block: range, units: Units = units) -> dict[str, np.ndarray]:
            rows = list(block)
            rises, _ = relative_surprise(inspected.classifier, inputs[rows], classes[rows], units, silent)
            return {"rises": rises.numpy()}

        what = f"erasing channels of {layer}"
        rises = inspected.compute_blocks(erase_channels, len(inputs), BLOCK, progress, what, layer)["rises"]
        columns = {"layer": layer, "channel": range(units.count), "importance": rises.mean(0)}
        columns |= {"error": _errors(rises), "median": np.median(rises, 0), "images": len(rises)}
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def _choose_images(inspected: LayerInspection, of: str) -> tuple[Tensor, Tensor]:
    """Return inputs and the class of each: its prediction, or its label where that is a class of the network."""
    if of == "prediction":
        return inspected.inputs, inspected.classifier.logits(inspected.inputs).argmax(1)
    classes = torch.from_numpy(inspected.classes)
    return inspected.inputs[classes >= 0], classes[classes >= 0]


def _errors(values: np.ndarray) -> np.ndarray:
    """Compute the standard error of the mean of each column; NaN of one row."""
    spread = values.std(0, ddof=1) if len(values) > 1 else np.full(values.shape[1], np.nan)
    return np.asarray(spread / np.sqrt(len(values)))
