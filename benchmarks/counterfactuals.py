"""What counterfactuals need: ``python -m benchmarks.counterfactuals``.

Each image is given cells of the image of the same set that the network assigns, with the most confidence, to the second
most likely class among those it predicts in the set at all. On the scenes the objects are known, and so is that
``scenes:blind`` cannot read the context. ``--real FOLDER`` adds a network and photographs of ImageNet.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from benchmarks.machine import arguments, hand_over
from core.network.classifier import Classifier
from core.robustness.counterfactual import GRID, find_counterfactual
from data.types import ImageSet
from study.network.sources import open_classifier, open_set
from study.plan.config import ImageSource

SCENES, PHOTOGRAPHS = 40, 10
AMONG = 200
"""Images among which the other image is looked for."""
NETWORKS, SPLITS = ("scenes", "scenes:blind"), ("adversarial", "standard")


def main() -> None:
    """Read the arguments, search, print."""
    parser = arguments("counterfactuals")
    parser.add_argument("--real", type=Path, help="folder with imagenet/mobilenet_v2.py and imagenet/images")
    given = parser.parse_args()
    hand_over("counterfactuals", given, lambda: {"sets": measure(given.real)})


def measure(real: Path | None) -> list[dict[str, Any]]:
    """Search counterfactuals on the scenes and, if they are there, on photographs."""
    rows = []
    for network in NETWORKS:
        classifier = open_classifier(network, Path.cwd(), "cpu")
        for split in SPLITS:
            source = {"set": "scenes", "split": split, "size": AMONG}
            images = open_set(ImageSource.model_validate(source), Path.cwd())
            rows.append(summarise(classifier, images, SCENES) | {"network": network, "images": f"{split} scenes"})
    if real is not None:
        classifier = open_classifier(f"{real / 'imagenet' / 'mobilenet_v2.py'}:build", Path.cwd(), "cpu")
        images = open_set(
            ImageSource.model_validate({"set": "folder", "path": str(real / "imagenet" / "images")}), Path.cwd()
        )
        row = summarise(classifier, images, PHOTOGRAPHS)
        rows.append(row | {"network": "mobilenet_v2", "images": "photographs of ImageNet"})
    return rows


def summarise(classifier: Classifier, images: ImageSet, count: int) -> dict[str, Any]:
    """Search a counterfactual for each of the first images, and summarise them, JSON-ready."""
    inputs = torch.stack([classifier.preprocess(images.open(i)) for i in range(min(AMONG, len(images)))])
    probabilities = classifier.probabilities(inputs)
    said = probabilities.argmax(1)
    cells, alike, on_object = [], [], []
    for i in tqdm(range(count), desc=f"{classifier.name}, {images.name}"):
        others = probabilities[i, said].clone()
        others[said == said[i]] = -1
        second = said[int(others.argmax())]
        other = int(torch.where(said == second, probabilities[:, second], -1.0).argmax())
        counterfactual = find_counterfactual(classifier, inputs[i], inputs[other])
        cells.append(len(counterfactual.cells))
        alike.append(float((counterfactual.as_many.argmax(1) == counterfactual.new).float().mean()))
        if images.mask is not None:
            on_object.append(share_on_object(images.mask(i), counterfactual.cells))
    low, middle, high = np.quantile(cells, [0.1, 0.5, 0.9]).tolist()
    return {
        "searches": count,
        "cells": [middle, low, high],
        "random_cells_alike": float(np.mean(alike)),
        "share_on_object": float(np.mean(on_object)) if on_object else None,
    }


def share_on_object(mask: NDArray[np.bool_], cells: tuple[int, ...]) -> float:
    """Compute the share of the cells' pixels that lie on the object (H, W)."""
    rows, columns = (np.arange(n) * GRID // n for n in mask.shape)
    inside = np.isin(rows[:, None] * GRID + columns, cells)
    return float((inside & mask).sum() / inside.sum())


if __name__ == "__main__":
    main()
