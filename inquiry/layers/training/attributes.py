"""The question `attributes` of `inquiry.layers`: how was a network built and trained, by what it predicts?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from PIL import Image

import data
from core.drawing.rendering import tile_images
from core.errors import ForetellError
from core.registry import Registry
from core.shares import share_of
from core.training.metamodel import OUTPUTS, Likeness, MetamodelSettings, Output, measure_likeness
from core.types import Progress
from data.types import Relatives
from inquiry.layers.costs import PlannedQuestion, Work
from inquiry.layers.inspection import LayerInspection
from inquiry.layers.lists import choose_names, count_listed
from inquiry.layers.record import Drawing, TableWords, Topic, layer_question
from inquiry.layers.training import attribute_splits
from inquiry.layers.training.attribute_queries import (
    Reading,
    ask_network,
    check_side,
    read_by_crafted,
    read_by_images,
    read_by_single,
)
from inquiry.layers.training.attribute_splits import (
    describe_extrapolation,
    divide_relatives,
    estimate_over_relatives,
    extrapolate,
)
from study import plots

RELATIVES = Registry("collection of relatives", data.RELATIVES)
ALL = "all"
UNLIKE = 0.05
"""P-value below which the note says that a network is unlike the relatives."""
Queries = Literal["images", "crafted", "single"]
READABLE: Mapping[Queries, tuple[Output, ...]] = {"images": OUTPUTS, "crafted": OUTPUTS, "single": ("top-1",)}
"""What a network may disclose of its predictions for images of each kind."""
COLUMNS = ("output", "attribute", "predicted", "probability", "accuracy", "low", "high", "chance", "by_images", "gain",
           "gain_low", "gain_high", "distance", "usual_distance", "p_like", "note")  # fmt: skip


def draw_queries(inspected: LayerInspection) -> dict[str, Image.Image]:
    """Draw the crafted images that the network was asked about."""
    known, queries, chosen = inspected.kept["attributes"]
    if queries == "single":
        return {"each attribute": tile_images([known.single.open(k) for k in range(len(known.attributes))], 4)}
    if queries == "images":
        return {}
    sets = {output: known.crafted[output] for output in chosen}
    shapes = {output: (own.outputs.shape[0], own.outputs.shape[2]) for output, own in sets.items()}
    return {
        output: tile_images([own.open(k) for k in range(math.prod(shapes[output]))], shapes[output][1])
        for output, own in sets.items()
    }


def plot_attributes(table: pd.DataFrame) -> go.Figure:
    """Draw the accuracy of the metamodels on held-out relatives by attribute and output, with chance as crosses."""
    figure = plots.intervals(table, x="attribute", y="accuracy", by="output", title="Accuracy", percent=True)
    chance = table.drop_duplicates("attribute")["chance"]
    marker = {"color": plots.INK, "symbol": "line-ew-open", "size": 28}
    return figure.add_scatter(x=list(range(len(chance))), y=chance, mode="markers", name="chance", marker=marker)


QUERIES = 100
"""Images that a network is asked about, to compare it with its relatives; as many are crafted for an output."""


def ask_each_query(_: PlannedQuestion, given: Mapping[str, Any]) -> Work:
    """Predict the images of the relatives, and those that were crafted for each output."""
    sets = count_listed(given["outputs"]) if given["queries"] == "crafted" else 0
    return Work(QUERIES * (1 + sets))


@layer_question(
    topic=Topic.TRAINING,
    asks="how the network was built",
    reading=(
        "Accuracy with which each attribute is predicted for held-out relatives, with 95% intervals. The "
        "table has the predictions for this network, and for crafted images, under By images, the "
        "accuracy without crafting."
    ),
    publications={"Oh et al. 2018": "https://arxiv.org/abs/1711.01768"},
    own_images=True,
    lists={"outputs": OUTPUTS},
    table=TableWords(
        shares="probability|by_images|gain|unseen|at_random|change|kept",
        printed=("output", "attribute", "predicted", "probability", "accuracy", "low", "high", "chance", "by_images"),
    ),
    drawing=Drawing(draw_queries, "Crafted images that this network was asked about, for"),
    figure=plot_attributes,
    cost=ask_each_query,
)
def attributes(
    inspected: LayerInspection,
    progress: Progress,
    *,
    relatives: str = "scenes",
    queries: Queries = "images",
    outputs: str = "prob,ranking,bottom-1,top-1",
    unseen: str = "",
    hidden: int = 100,
    epochs: int = 30,
) -> pd.DataFrame:
    """Predict how the network was built and trained, by nothing but its predictions for fixed images.

    KENNEN of Oh et al. 2018 (arXiv:1711.01768): metamodels learn the attributes of relatives, small networks that
    were built and trained in known ways, from their predictions for the same images. The images of the set are not
    used. Single images were crafted for ``top-1`` alone. ``probability`` is of the predicted value, scaled on held-out
    relatives. ``accuracy`` is that on relatives from which neither metamodels nor crafted
    images were learned, with a 95% interval, and ``chance`` that of the most common value. For crafted images,
    ``by_images`` is the accuracy by the relatives' images and the same output, and ``gain`` the difference, with a
    paired interval.
    The column ``unseen`` is the accuracy about relatives whose values of the attributes of that name no network had
    that metamodels learned from (E-split), ``at_random`` that of as many networks drawn, ``change`` the difference,
    with a paired interval, and ``kept`` what of the accuracy above chance is left (eq. 4).
    ``distance`` is how far the network's predictions are from those of the nearest relative (root mean square of log
    probabilities), ``usual_distance`` the median of the relatives' own, and ``p_like`` how often one of them is as far
    from its nearest. ``note`` warns of a network that is unlike the relatives, and of attributes that cannot be
    predicted.

    Parameters
    ----------
    relatives
        Small networks of known attributes to learn from: scenes, which classify the generated scenes.
    queries
        Images that the network is asked about: those of the relatives (kennen-o), images crafted in turn with the
        metamodels (kennen-io), or a single crafted image for each attribute (kennen-i).
    outputs
        What the network discloses, separated by commas: probabilities (prob), the order of the classes (ranking), or
        the lowest (bottom-1) or highest class (top-1) alone.
    unseen
        Attributes to test extrapolation by, such as layers, separated by commas: the accuracy about relatives whose
        values of them no network had that metamodels learned from. Empty for none.
    hidden
        Hidden units of each layer of a metamodel.
    epochs
        Passes over the relatives when metamodels are trained.
    """
    chosen = _list_outputs(outputs, queries)
    known: Relatives = RELATIVES[relatives]()
    asked = ask_network(inspected.classifier, known)
    if unseen:
        _refuse_unseen(known, unseen, queries)
    if queries != "images":
        check_side(inspected.classifier, known)
    likeness = measure_likeness(asked.log_p, torch.from_numpy(known.log_p))
    warnings = [warn_of_unlike(inspected.classifier.name, likeness)]
    settings = MetamodelSettings(hidden, epochs)
    rows: list[dict[str, object]] = []
    for output in chosen:
        plain = read_by_images(known, asked, output, settings, inspected.generator(), progress)
        reading = plain
        if queries == "crafted":
            reading = read_by_crafted(known, inspected.classifier, output, settings, inspected.generator(), progress)
        elif queries == "single":
            reading = read_by_single(known, inspected.classifier)
        table = describe_attributes(known, reading)
        whole = describe_average(known, reading, likeness)
        if reading is not plain:
            for a, row in enumerate(table):
                row |= compare_readings(reading.correct[:, a], plain.correct[:, a])
            whole |= compare_readings(reading.correct.mean(1), plain.correct.mean(1))
        if unseen:
            split = extrapolate(known, unseen, output, settings, inspected.generator(), progress)
            chances = [_find_chance(known, a) for a in range(len(table))]
            for row, columns in zip((whole, *table), describe_extrapolation(split, chances), strict=True):
                row |= columns
        warnings += [warn_of_chance(output, table), warn_of_silence(known, reading)]
        whole["note"] = " ".join(note for note in warnings if note) or None
        warnings = []  # what is warned of the network is noted once
        rows += [{"output": output, **row} for row in (whole, *table)]
    inspected.kept["attributes"] = (known, queries, chosen)
    return pd.DataFrame(rows, columns=[*COLUMNS[:-1], *(attribute_splits.COLUMNS if unseen else ()), COLUMNS[-1]])


def _refuse_unseen(known: Relatives, unseen: str, queries: Queries) -> None:
    divide_relatives(known, unseen)
    if queries != "images":
        raise ForetellError(
            f"unseen={unseen!r} trains metamodels on other parts of the relatives than images were crafted for: choose "
            "queries=images, or leave unseen out."
        )


def _list_outputs(text: str, queries: Queries) -> list[Output]:
    names = choose_names("outputs", text, OUTPUTS, "kind of output")
    fitting = READABLE[queries]
    chosen = [output for output in fitting if output in names]
    if not chosen:
        raise ForetellError(
            f"outputs={text!r}: queries={queries} were made for {' and '.join(fitting)} alone. Choose that, or another "
            "kind of queries."
        )
    return chosen


def describe_attributes(known: Relatives, reading: Reading) -> list[dict[str, object]]:
    """Return a row for each attribute: the predicted value, and how often held-out relatives' values are predicted."""
    rows: list[dict[str, object]] = []
    for a, (name, names) in enumerate(known.attributes.items()):
        accuracy, low, high = share_of(int(reading.correct[:, a].sum()), len(reading.correct))
        value, probability = reading.predicted[a] or (None, None)
        row: dict[str, object] = {"attribute": name, "probability": probability}
        row["predicted"] = None if value is None else names[value]
        rows.append(row | {"accuracy": accuracy, "low": low, "high": high, "chance": _find_chance(known, a)})
    return rows


def describe_average(known: Relatives, reading: Reading, likeness: Likeness) -> dict[str, object]:
    """Return the row about all attributes: the mean accuracy with its interval over relatives, and the likeness."""
    accuracy, low, high = estimate_over_relatives(reading.correct.mean(1))
    row: dict[str, object] = {"attribute": ALL, "predicted": None, "probability": None, "accuracy": accuracy}
    row |= {"low": low, "high": high}
    row["chance"] = float(np.mean([_find_chance(known, a) for a in range(len(known.attributes))]))
    row |= {"distance": likeness.distance, "usual_distance": float(likeness.usual.median())}
    return row | {"p_like": likeness.p_value}


def compare_readings(crafted: np.ndarray, plain: np.ndarray) -> dict[str, object]:
    """Compare two shares of correct predictions (R,) of the same relatives, with a paired interval over relatives."""
    gain, low, high = estimate_over_relatives(crafted.astype(float) - plain)
    return {"by_images": float(plain.mean()), "gain": gain, "gain_low": low, "gain_high": high}


def _find_chance(known: Relatives, attribute: int) -> float:
    """Return the share of relatives with the most common value."""
    return float(np.bincount(known.values[:, attribute]).max() / len(known.values))


def warn_of_unlike(name: str, likeness: Likeness) -> str | None:
    """Warn of a network whose predictions are further from all relatives than theirs are from each other."""
    if likeness.p_value >= UNLIKE:
        return None
    nearer = int((likeness.usual < likeness.distance).sum())
    return (
        f"{name} is unlike the relatives: its predictions are {likeness.distance:.2f} nats from the nearest of them, "
        f"and {nearer} of {len(likeness.usual)} relatives are nearer to their nearest (p = {likeness.p_value:.3f}). "
        "The accuracy on relatives says nothing about it: do not rely on the predicted attributes."
    )


def warn_of_chance(output: str, rows: list[dict[str, object]]) -> str | None:
    """Name the attributes that held-out relatives do not disclose: the interval of the accuracy reaches chance."""
    hidden = [str(row["attribute"]) for row in rows if row["low"] <= row["chance"]]  # type: ignore[operator]
    if not hidden:
        return None
    return f"From {output} no better than by chance: {', '.join(hidden)}."


def warn_of_silence(known: Relatives, reading: Reading) -> str | None:
    """Name the attributes of which a single query disclosed nothing: the class predicted of it is no value's."""
    silent = [name for name, result in zip(known.attributes, reading.predicted, strict=True) if result is None]
    return f"The predicted class is no value's number, so nothing is known of: {', '.join(silent)}." if silent else None
