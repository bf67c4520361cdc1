"""The question `deletion` of `inquiry.layers`: what does each class lose without a unit?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch

from core.attribution.places.place import select_layer
from core.layers.deletion import UnitDeletions, by_class, predict_without_units, refuse_single
from core.types import Progress, silent
from inquiry.layers.costs import leave_out_each_unit
from inquiry.layers.figures import LOSS_COLOURS, MOST_ROWS, draw_heat, list_in_first_order
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.record import TableWords, Topic, layer_question

BLOCK = 8
"""Images whose predictions are saved at a time, with every unit deleted."""


def plot_deletion(table: pd.DataFrame) -> go.Figure:
    """Draw what each class loses without a unit, for the units with the largest effects."""
    named = table.assign(unit=table["layer"] + ", " + table["unit"].astype(str))
    wide = named.pivot(index="unit", columns="class", values="drop")
    most = wide.abs().max(axis=1).nlargest(MOST_ROWS)
    end = float(most.max()) or 1.0
    return draw_heat(
        wide.loc[most.index, list_in_first_order(table["class"])], LOSS_COLOURS, (-end, end), "Probability lost"
    )


@layer_question(
    topic=Topic.UNITS,
    asks="classes that rely on a unit",
    reading=(
        "Probability that each class loses on its own images when a unit is set to 0, for the units with "
        "the largest effects."
    ),
    publications={
        "Li et al. 2016": "https://arxiv.org/abs/1612.08220",
        "Bau et al. 2020": "https://arxiv.org/abs/2009.05041",
    },
    layered=True,
    table=TableWords(headings={"drop": "Probability lost", "error": "SE"}, shares="accuracy_without"),
    figure=plot_deletion,
    cost=leave_out_each_unit,
)
def deletion(inspected: LayerInspection, progress: Progress) -> pd.DataFrame:
    """Measure what each class loses when a unit is deleted, one row per unit and class."""
    classes = torch.from_numpy(inspected.classes)
    shown = torch.nonzero(classes >= 0)[:, 0]
    labels = classes[shown]
    refuse_single(labels, inspected.classifier.names.short)
    tables = []
    for layer in inspected.request.layers or [select_layer(inspected.classifier, "")]:

        def delete_units(block: range, layer: str = layer) -> dict[str, np.ndarray]:
            rows = shown[list(block)]
            deletions = predict_without_units(
                inspected.classifier, inspected.inputs[rows], classes[rows], layer, progress=silent
            )
            return {name: values.numpy() for name, values in deletions._asdict().items()}

        what = f"deleting units of {layer}"
        columns = inspected.compute_blocks(delete_units, len(shown), BLOCK, progress, what, layer)
        deletions = by_class(
            UnitDeletions(**{name: torch.from_numpy(values) for name, values in columns.items()}), labels
        )
        units = range(len(deletions.drop))
        tables.append(
            pd.DataFrame(
                {
                    "layer": layer,
                    "unit": np.repeat(units, len(deletions.classes)),
                    "class": [inspected.classifier.names.short[int(k)] for k in deletions.classes] * len(units),
                    "drop": deletions.drop.flatten(),
                    "error": deletions.error.flatten(),
                    "accuracy_without": deletions.accuracy.flatten(),
                    "accuracy": deletions.whole.repeat(len(units)),
                }
            )
        )
    return pd.concat(tables, ignore_index=True)
