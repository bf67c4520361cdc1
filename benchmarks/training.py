"""How a network learns, by epoch: ``python -m benchmarks.training`` (a few minutes on one core).

The built-in network's architecture, which here reads scenes at 32 px, is trained from random weights on six kinds of
data, by the question ``memorisation`` of the command ``layers``. A network of ReLUs learns a sum of waves. The accuracy
on low and on high frequencies alone is that of the built-in network and of the two that see nothing else.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from benchmarks.machine import arguments, hand_over
from core.network.classifier import Classifier
from core.robustness.frequencies import accuracy_by_radius
from core.training.modifications import MODIFICATIONS
from core.training.spectrum import record_waves
from data.scenes.classifier import CATEGORIES, SceneNet, normalise
from inquiry.layers.inspection import LayerInspection, LayerQuery
from inquiry.layers.training.memorisation import divide_images, memorisation
from study.network.sources import open_classifier, open_set
from study.plan.config import ImageSource

SIDE = 32
"""Side of the images that are trained on, px: as in Arpit et al. 2017 (CIFAR-10), and trained in a minute."""
ENDS = ("scenes", "scenes:coarse", "scenes:fine")
CUT = 8.0
"""Highest of the low frequencies, cycles per image."""
FREQUENCIES, SEEDS = (1, 2, 4, 8, 16), 3


def main() -> None:
    """Read the arguments, train, print."""
    parser = arguments("training")
    parser.add_argument("--images", type=int, default=800, help="standard scenes, half of which are held out")
    parser.add_argument("--epochs", type=int, default=32, help="passes over the training images")
    given = parser.parse_args()
    hand_over("training", given, lambda: measure(given.images, given.epochs))


def measure(images: int, epochs: int) -> dict[str, Any]:
    """Record all trainings, JSON-ready."""
    return {
        "side": SIDE,
        "images": images,
        "epochs": epochs,
        "cut": CUT,
        "record": record(images, epochs),
        "ends": measure_ends(images),
        "waves": [learn_waves(seed) for seed in range(SEEDS)],
    }


def make_small() -> Classifier:
    """Return the built-in network's architecture for small images."""

    def transforms(image: Image.Image) -> Tensor:
        small = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX)
        return normalise(torch.from_numpy(np.array(small)).permute(2, 0, 1)[None])[0]

    return Classifier(SceneNet(), transforms, CATEGORIES, name=f"SceneNet at {SIDE} px")


def inspect(classifier: Classifier, images: int) -> LayerInspection:
    """Return a network with so many standard scenes."""
    drawn = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": images}), Path.cwd())
    return LayerInspection(classifier, drawn, LayerQuery("memorisation"), classifier)


def record(images: int, epochs: int) -> list[dict[str, Any]]:
    """Train on every kind of data."""

    def report(done: int, of: int, what: str) -> None:
        print(f"{done} of {of} {what}", file=sys.stderr, flush=True)

    table = memorisation(inspect(make_small(), images), report, kinds=",".join(MODIFICATIONS), epochs=epochs, cut=CUT)
    return [{name: _round(value) for name, value in row.items()} for row in table.to_dict("records")]


def measure_ends(images: int) -> list[dict[str, Any]]:
    """Measure accuracy on low and on high frequencies alone, of scenes that no network was trained on."""
    rows = []
    for name in ENDS:
        inspected = inspect(open_classifier(name, Path.cwd(), "cpu"), images)
        _, held_out, _ = divide_images(inspected)
        curve = accuracy_by_radius(inspected.classifier, held_out.inputs, held_out.labels.tolist(), [CUT])
        rows.append(
            {"network": name, "whole": curve.whole, "coarse": float(curve.low[0]), "fine": float(curve.high[0])}
        )
    return rows


def learn_waves(seed: int) -> dict[str, Any]:
    """Record how much of each wave is learned after each measured step."""
    waves = record_waves(FREQUENCIES, generator=torch.Generator().manual_seed(seed))
    shares = [[_round(value) for value in row] for row in waves.shares.tolist()]
    return {"frequencies": waves.frequencies, "steps": waves.steps, "shares": shares, "order": waves.order}


def _round(value: Any) -> Any:
    """Round numbers for JSON, which knows no missing numbers."""
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else round(value, 4)


if __name__ == "__main__":
    main()
