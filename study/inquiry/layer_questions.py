"""The questions of `study.inquiry.layers`, one function each: each returns a table about a layer or unit."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from core.attribution.places.place import select_layer
from core.class_names import shorten_names
from core.errors import ForetellError
from core.layers.deletion import UnitDeletions, by_class, predict_without_units, refuse_single
from core.layers.dissection import TOP, dissect
from core.layers.information import compute_input_information, compute_label_information
from core.layers.layers import maps_of, means_of
from core.layers.probe import compare_probes, linear_probe, perceptron_probe
from core.layers.similarity import svcca
from core.types import Progress, silent
from data.types import ImageSet
from study.inquiry.layers import LayerInspection
from study.workspace.blocks import Blocks

PLACES = 4
"""Largest side of the grid of places at which one layer is reconstructed from another."""
PIXELS = 8
"""Side of the grid of mean colours that represents the image when its information is measured."""
Z = 1.96
BLOCK = 8
"""Images whose predictions are saved at a time, with every unit deleted."""


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

        kept = Blocks(inspected.parts, f"{inspected.key}.{layer}", len(shown), BLOCK)
        columns = kept.join(delete_units, progress, f"deleting units of {layer}")
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
        kept.forget()
    return pd.concat(tables, ignore_index=True)
