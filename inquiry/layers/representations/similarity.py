"""The question `similarity` of `inquiry.layers`: which layers are linear functions of each other?"""

from __future__ import annotations

from itertools import product

import pandas as pd
import plotly.graph_objects as go

from core.layers.layers import means_of
from core.layers.similarity import svcca
from core.types import Progress
from inquiry.layers.costs import read_each_layer
from inquiry.layers.figures import SHARE_COLOURS, draw_heat, list_in_first_order
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.record import Topic, layer_question


def plot_similarity(table: pd.DataFrame) -> go.Figure:
    """Draw the mean canonical correlation of every layer with every other."""
    wide = table.pivot(index="layer", columns="other", values="similarity")
    return draw_heat(
        wide.loc[list_in_first_order(table["layer"]), list_in_first_order(table["other"])],
        SHARE_COLOURS,
        (0, 1),
        "Similarity",
    ).update_layout(xaxis_title="Compared layer", yaxis_title="Layer")


@layer_question(
    topic=Topic.REPRESENTATIONS,
    asks="layers that match (SVCCA)",
    reading=(
        "Mean canonical correlation of each pair of layers. At 1, each layer is a linear function of the "
        "other. The table has the similarity expected by chance."
    ),
    publications={"Raghu et al. 2017": "https://arxiv.org/abs/1706.05806"},
    compares=True,
    figure=plot_similarity,
    cost=read_each_layer,
)
def similarity(inspected: LayerInspection, progress: Progress) -> pd.DataFrame:
    """Compare every layer with every layer of the compared network, or of the same one (SVCCA)."""
    own = {layer: means_of(inspected.classifier, inspected.inputs, layer) for layer in inspected.layers}
    others = {
        layer: means_of(inspected.compared, inspected.inputs_compared, layer) for layer in inspected.layers_compared
    }
    rows = []
    for one, other in product(own, others):
        comparison = svcca(own[one], others[other], generator=inspected.generator())
        rows.append([one, other, comparison.mean, comparison.chance, comparison.chance_error, *comparison.kept])
        progress(len(rows), len(own) * len(others), "comparing layers")
    return pd.DataFrame(rows, columns=["layer", "other", "similarity", "chance", "chance_sd", "kept", "other_kept"])
