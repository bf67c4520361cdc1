"""The question `attributes` of `study.inquiry.layers`: how was a network built and trained, by what it predicts?"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd
import torch
from torch import Tensor

import data
from core.classifier import Classifier
from core.errors import ForetellError
from core.registry import Registry
from core.shares import share_of
from core.training.metamodel import (
    OUTPUTS,
    Likeness,
    Metamodels,
    MetamodelSettings,
    Output,
    encode_outputs,
    measure_likeness,
    train_metamodels,
)
from core.types import Progress
from data.types import Relatives
from study.inquiry.layers import LayerInspection
from study.network.sources import match_classes

RELATIVES = Registry("collection of relatives", data.RELATIVES)
ALL = "all"
UNLIKE = 0.05
"""P-value below which the note says that a network is unlike the relatives."""
Z = NormalDist().inv_cdf(0.975)
COLUMNS = ("output", "attribute", "predicted", "probability", "accuracy", "low", "high", "chance", "distance",
           "usual_distance", "p_like", "note")  # fmt: skip


@dataclass(frozen=True)
class Predictions:
    """Log probabilities (R, n, K) of networks for n images, and the class (R, n) with the highest and the lowest."""

    log_p: Tensor
    most: Tensor
    least: Tensor


def attributes(
    inspected: LayerInspection,
    progress: Progress,
    *,
    relatives: str = "scenes",
    outputs: str = "prob,bottom-1,top-1",
    hidden: int = 100,
    epochs: int = 30,
) -> pd.DataFrame:
    """Predict how the network was built and trained, by nothing but its predictions for fixed images.

    KENNEN-O of Oh et al. 2018 (arXiv:1711.01768): metamodels learn the attributes of ``relatives``, small networks that
    were built and trained in known ways, from their predictions for the same images. The images of the set are not
    used. ``outputs`` is what a network discloses: its probabilities (``prob``), or the class with the lowest
    (``bottom-1``) or the highest probability (``top-1``) alone. ``probability`` is of the predicted value, scaled on
    held-out relatives. ``accuracy`` is that of the metamodels on relatives that they were not trained on, with a 95%
    interval, and ``chance`` that of the most common value. ``distance`` is how far the network's predictions are from
    those of the nearest relative (root mean square of log probabilities), ``usual_distance`` the median of the
    relatives' own, and ``p_like`` how often one of them is as far from its nearest. ``note`` warns of a network that
    is unlike the relatives, and of attributes that cannot be predicted.
    """
    chosen = _list_outputs(outputs)
    known: Relatives = RELATIVES[relatives]()
    asked = ask_network(inspected.classifier, known)
    others = Predictions(*(torch.from_numpy(part) for part in (known.log_p, known.most, known.least)))
    likeness = measure_likeness(asked.log_p[0], others.log_p)
    warning = warn_of_unlike(inspected.classifier.name, likeness)
    settings = MetamodelSettings(hidden, epochs)
    values = torch.from_numpy(known.values)
    counts = tuple(len(names) for names in known.attributes.values())
    rows: list[dict[str, object]] = []
    for output in chosen:  # what is warned of the network is noted once
        features = encode_outputs(others.log_p, others.most, others.least, output)
        trained = train_metamodels(
            features, values, counts, settings, generator=inspected.generator(), progress=progress
        )
        own = trained.predict(encode_outputs(asked.log_p, asked.most, asked.least, output)[0])
        table = describe_attributes(known, trained, own)
        whole = describe_average(known, trained, likeness)
        whole["note"] = (
            " ".join(note for note in (warning if not rows else None, warn_of_chance(output, table)) if note) or None
        )
        rows += [{"output": output, **row} for row in (whole, *table)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _list_outputs(text: str) -> list[Output]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    unknown = [name for name in names if name not in OUTPUTS]
    if unknown:
        raise ForetellError(f"outputs={text!r}: {unknown[0]!r} is no kind of output. There are: {', '.join(OUTPUTS)}.")
    return [output for output in OUTPUTS if output in names]


def ask_network(classifier: Classifier, known: Relatives) -> Predictions:
    """Predict the images of the relatives by a network, in the order of their classes.

    Raises
    ------
    ForetellError
        The network has other classes than the relatives.
    """
    order = match_classes(known.categories, classifier.categories)
    if sorted(order) != list(range(len(classifier.categories))):
        raise ForetellError(
            f"The relatives tell {len(known.categories)} classes apart ({', '.join(known.categories[:4])}, ...) and "
            f"{classifier.name} others ({', '.join(classifier.categories[:4])}, ...): ask a network with the same "
            "classes, or train relatives with its classes, as data/scenes/relatives/train.py does."
        )
    inputs = torch.stack([classifier.preprocess(known.open(k)) for k in range(known.count)])
    log_p = classifier.logits(inputs)[:, order].log_softmax(1)[None]
    return Predictions(log_p.clamp(min=known.floor), log_p.argmax(2), log_p.argmin(2))


def describe_attributes(known: Relatives, trained: Metamodels, own: tuple[Tensor, ...]) -> list[dict[str, object]]:
    """Return a row for each attribute: the predicted value, and how often held-out relatives' values are predicted."""
    rows: list[dict[str, object]] = []
    for a, (name, names) in enumerate(known.attributes.items()):
        correct = trained.held_out[a].argmax(1).numpy() == known.values[:, a]
        accuracy, low, high = share_of(int(correct.sum()), len(correct))
        value = int(own[a].argmax())
        row: dict[str, object] = {"attribute": name, "predicted": names[value], "probability": float(own[a][value])}
        rows.append(row | {"accuracy": accuracy, "low": low, "high": high, "chance": _find_chance(known, a)})
    return rows


def describe_average(known: Relatives, trained: Metamodels, likeness: Likeness) -> dict[str, object]:
    """Return the row about all attributes: the mean accuracy with its interval over relatives, and the likeness."""
    predicted = np.stack([held_out.argmax(1).numpy() for held_out in trained.held_out], 1)
    each = (predicted == known.values).mean(1)
    error = float(each.std(ddof=1) / len(each) ** 0.5)
    accuracy = float(each.mean())
    row: dict[str, object] = {"attribute": ALL, "predicted": None, "probability": None, "accuracy": accuracy}
    row |= {"low": accuracy - Z * error, "high": accuracy + Z * error}
    row["chance"] = float(np.mean([_find_chance(known, a) for a in range(len(known.attributes))]))
    row |= {"distance": likeness.distance, "usual_distance": float(likeness.usual.median())}
    return row | {"p_like": likeness.p_value}


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
