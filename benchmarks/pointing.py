"""The pointing game on photographs, in the photograph's own frame.

Zhang et al. 2016 (arXiv:1608.00507), section 4.2. A heatmap has the network's input size: its maximum is located in the
photograph, where the boxes and the tolerance are, by the measured geometry of the network's transforms.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import distance_transform_edt
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint
from torch import Tensor

from core.errors import ForetellError
from core.faithfulness.pointing import pointing_hit
from core.faithfulness.ranking import ranks
from core.network.classifier import Classifier
from core.network.geometry import Geometry

TOLERANCE = 15.0
"""Tolerance, px of the photograph."""


@dataclass(frozen=True)
class Photograph:
    """A photograph with boxes of its class: its input, the class, and a mask (height, width) of the boxes.

    ``geometry`` locates the input in the photograph.
    """

    name: str
    x: Tensor
    target: int
    inside: Tensor
    geometry: Geometry


def photographs(folder: Path, classifier: Classifier) -> list[Photograph]:
    """Load the photographs that ``folder/targets.json`` lists, with their boxes."""
    return [_open(folder, classifier, entry) for entry in json.loads((folder / "targets.json").read_text("utf-8"))]


def _open(folder: Path, classifier: Classifier, entry: dict[str, Any]) -> Photograph:
    with Image.open(folder / entry["image"]) as image:
        x, (width, height) = classifier.preprocess(image), image.size
    inside = torch.zeros(height, width, dtype=torch.bool)
    for left, top, right, bottom in entry["boxes_xyxy_relative"]:
        rows, columns = (
            slice(max(0, round(low * size)), max(1, round(high * size)))
            for low, high, size in ((top, bottom, height), (left, right, width))
        )
        inside[rows, columns] = True
    geometry = classifier.geometry((width, height))
    if geometry is None:
        raise ForetellError(f"{classifier.name} does not say where its input is in a photograph.")
    return Photograph(Path(entry["image"]).name, x, int(entry["class_index"]), inside, geometry)


def is_hit(photograph: Photograph, evidence: Tensor) -> bool:
    """Tell whether the maximum of a heatmap (H, W) is at most 15 px of the photograph from a box."""
    place = (ranks(evidence[None])[0] == 0).nonzero()[0].numpy()
    point = torch.zeros(1, *photograph.inside.shape)
    point[(0, *map(int, photograph.geometry.pixels(*place)))] = 1
    return bool(pointing_hit(point, photograph.inside[None], tolerance=TOLERANCE)[0])


def is_centre_hit(photograph: Photograph) -> bool:
    """Tell whether the photograph's centre hits a box."""
    height, width = photograph.geometry.shape
    middle = torch.zeros(height, width)
    middle[height // 2, width // 2] = 1
    return is_hit(photograph, middle)


def chance(photograph: Photograph) -> float:
    """Compute the probability that a random pixel of the network's input hits a box."""
    return float(_near(photograph)[photograph.geometry.pixels(*np.indices(photograph.geometry.shape))].mean())


def chance_anywhere(photograph: Photograph) -> float:
    """Compute the probability that a random pixel of the photograph hits a box."""
    return float(_near(photograph).mean())


def _near(photograph: Photograph) -> NDArray[np.bool_]:
    near: NDArray[np.bool_] = distance_transform_edt(~photograph.inside.numpy()) <= TOLERANCE
    return near


def pointing_table(
    hits: dict[str, list[bool]], centre: list[bool], chances: list[float], anywhere: list[float]
) -> dict[str, Any]:
    """Tabulate each method's share of hits with Wilson's 95 % interval, and McNemar's exact test against the centre.

    ``p_holm`` corrects for the number of methods tested.
    """
    methods = {name: _share(own) | {"p_against_centre": _against(own, centre)} for name, own in hits.items()}
    correct_for_all(methods)
    return {
        "photographs": len(centre),
        "tolerance_px": TOLERANCE,
        "random_pixel": round(float(np.mean(chances)), 4),
        "random_pixel_anywhere": round(float(np.mean(anywhere)), 4),
        "centre": _share(centre),
        "methods": methods,
    }


def correct_for_all(methods: dict[str, dict[str, Any]]) -> None:
    """Write ``p_holm``, Holm's correction of ``p_against_centre`` for the number of methods, next to it."""
    if methods:
        tested = [row["p_against_centre"] for row in methods.values()]
        for row, p in zip(methods.values(), multipletests(tested, method="holm")[1], strict=True):
            row["p_holm"] = float(p)


def _share(hits: list[bool]) -> dict[str, Any]:
    low, high = proportion_confint(sum(hits), len(hits), method="wilson")
    return {"share": round(sum(hits) / len(hits), 4), "interval_95": [round(float(low), 4), round(float(high), 4)]}


def _against(hits: list[bool], centre: list[bool]) -> float:
    """Compute p of the exact two-sided McNemar test of equal hit rates."""
    own, middle = np.array(hits), np.array(centre)
    table = [[(own & middle).sum(), (own & ~middle).sum()], [(~own & middle).sum(), (~own & ~middle).sum()]]
    return float(mcnemar(table, exact=True).pvalue)
