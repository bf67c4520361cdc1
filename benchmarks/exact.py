"""How close each heatmap method comes to an exact heatmap: ``python -m benchmarks.exact``.

The logit of ``scenes:words`` is a sum over visual words, and each word's a sum over patches, so its relevance is known
exactly (`data.scenes.zoo.words.WordsNet.explain`, the method ``own``). Another method's heatmap of the same network and
class is compared with it by Spearman's rank correlation over pixels, and over a grid of cells, which forgives noise.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from benchmarks.machine import arguments, hand_over
from benchmarks.zoo import CHEAP, RESAMPLES, stage
from core.attribution import METHODS
from core.attribution.outside.opening import open_method
from core.errors import ForetellError
from core.faithfulness.agreement import correlate_ranks
from core.network.classifier import Classifier
from data.scenes.generator import Scene
from study.network.sources import open_classifier

NETWORK, EXACT = "scenes:words", "own"
CELLS = 12
"""Side of the grid of cells."""


def main(words: Sequence[str] | None = None) -> None:
    """Read the arguments, compare, print."""
    parser = arguments("exact")
    parser.add_argument("--images", type=int, default=24, help="scenes, standard and shifted in turn")
    parser.add_argument("--methods", default=CHEAP.replace(" ", ","), help="comma-separated")
    given = parser.parse_args(words)
    hand_over("exact", given, lambda: measure(given.methods.split(","), given.images))


def measure(methods: Sequence[str], images: int) -> dict[str, Any]:
    """Compare each method's heatmaps with the exact ones, JSON-ready."""
    network = open_classifier(NETWORK, Path.cwd(), "cpu")
    scenes = stage(images)
    exact = [_explain(network, EXACT, scene) for scene in scenes]
    scores: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for method in methods:
        try:
            scores[method] = compare([_explain(network, method, scene) for scene in scenes], exact)
        except ForetellError as error:
            left_out[method] = str(error)
        print(method, scores.get(method, left_out.get(method)), file=sys.stderr, flush=True)
    return {
        "network": NETWORK,
        "images": images,
        "cells_per_side": CELLS,
        "methods": scores,
        "left_out": left_out,
        "not_measured": [name for name in METHODS if name not in methods],
    }


def compare(own: Sequence[Tensor], exact: Sequence[Tensor]) -> dict[str, Any]:
    """Correlate heatmaps (H, W) with exact ones: means over images with bootstrap intervals; constant ones count 0."""
    scales = {"pixels": lambda heatmap: heatmap, "cells": lambda heatmap: adaptive_avg_pool2d(heatmap[None], CELLS)[0]}
    result = {}
    for name, scale in scales.items():
        each = np.array([correlate(scale(one), scale(true)) for one, true in zip(own, exact, strict=True)])
        rows = np.random.default_rng(0).integers(len(each), size=(RESAMPLES, len(each)))
        low, high = np.quantile(each[rows].mean(1), (0.025, 0.975))
        result[name] = [round(float(value), 3) for value in (each.mean(), low, high)]
    return result


def correlate(one: Tensor, other: Tensor) -> float:
    """Compute Spearman's rank correlation of two heatmaps; 0 where one of them is constant."""
    ranks = (rankdata(heatmap.double().numpy().reshape(1, -1), axis=1) for heatmap in (one, other))
    return float(correlate_ranks(*ranks)[0])


def _explain(network: Classifier, method: str, scene: Scene) -> Tensor:
    x = network.preprocess(scene.image)
    target = int(network.logits(x[None]).argmax())
    explanation = open_method(method)(network, x[None], [target], generator=torch.Generator().manual_seed(0))
    return explanation.evidence[0]


if __name__ == "__main__":
    main()
