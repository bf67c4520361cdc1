"""The question `dissection` of `inquiry.layers`: which object or context does each unit detect?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
import torch
from torch import Tensor

from core.attribution.places.place import select_layer
from core.class_names import shorten_names
from core.errors import ForetellError
from core.layers.dissection import TOP, dissect
from core.layers.layers import maps_of
from core.types import Progress
from data.types import ImageSet
from inquiry.layers.costs import read_each_layer
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.record import Topic, layer_question
from study import plots


def plot_dissection(table: pd.DataFrame) -> go.Figure:
    """Draw how many units detect each concept."""
    counts = table[table["detects"]].groupby(["layer", "concept"], sort=False).size().reset_index(name="units")
    counts = counts.sort_values("units", ascending=False, kind="stable")
    figure = px.bar(counts, x="concept", y="units", color="layer", color_discrete_sequence=plots.PALETTE)
    return plots.apply_layout(figure, "Units that detect it", percent=False).update_xaxes(title=None)


@layer_question(
    topic=Topic.UNITS,
    asks="concepts that units detect",
    reading=(
        "Number of units that detect each concept. A unit detects its best concept if the agreement is "
        "better than with the masks of other images."
    ),
    publications={"Bau et al. 2017": "https://arxiv.org/abs/1704.05796"},
    layered=True,
    figure=plot_dissection,
    cost=read_each_layer,
)
def dissection(inspected: LayerInspection, progress: Progress) -> pd.DataFrame:
    """Find the object or context that each unit detects, in sets that record where the object is."""
    images = inspected.images
    masks, names = concept_masks(images)
    rows = []
    for layer in inspected.request.layers or [select_layer(inspected.classifier, "")]:
        maps = maps_of(inspected.classifier, inspected.inputs, layer)
        agreement = dissect(
            maps, masks, names, top=compute_lit_share(maps), generator=inspected.generator(), progress=progress
        )
        best, concept = agreement.best
        for k in range(len(best)):
            lights = names[int(concept[k])]
            rows.append([layer, k, lights, float(best[k]), float(agreement.chance[k]), bool(agreement.detects[k])])
    return pd.DataFrame(rows, columns=["layer", "unit", "concept", "agreement", "chance", "detects"])


def concept_masks(images: ImageSet) -> tuple[Tensor, list[str]]:
    """Locate each category's objects and each context: masks (N, M, H, W) bool, and the M names.

    Raises
    ------
    ForetellError
        A set that does not record where its objects are.
    """
    if images.mask is None or images.contexts is None:
        raise ForetellError(
            f"{images.name} does not record where its objects are, which dissection needs: use the set scenes."
        )
    objects = np.stack([images.mask(i) for i in range(len(images))])
    contexts = sorted(set(images.contexts))
    names = [*shorten_names(images.categories), *contexts]
    masks = np.zeros((len(images), len(names), *objects.shape[1:]), dtype=bool)
    for i, (label, context) in enumerate(zip(images.labels, images.contexts, strict=True)):
        masks[i, label], masks[i, len(images.categories) + contexts.index(context)] = objects[i], ~objects[i]
    return torch.from_numpy(masks), names


def compute_lit_share(maps: Tensor) -> float:
    """Compute the share of a unit's activations above its threshold: the paper's, or two if there are fewer."""
    return max(TOP, 2 / (len(maps) * maps.shape[2:].numel()))
