"""``scenes:blind``: a network that does not use the context of an object.

An adversarial neural stethoscope (`data.scenes.zoo.stethoscope`), and contexts that are drawn independently of the
object.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import nn

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, SceneNet, transforms
from data.scenes.zoo.effects import measure_accuracy, measure_effects
from data.scenes.zoo.material import Material
from data.scenes.zoo.stethoscope import HIDDEN, fit_with_stethoscope
from data.scenes.zoo.store import restore

__all__ = ["CATEGORIES", "MEAN_COLOUR", "build", "train", "transforms"]

TITLE = "Blind to the context"
DIFFERENCE = (
    "It was trained on scenes whose context is drawn independently of the object, with an adversary that reads the "
    "context from its features and whose gradient is reversed. The context therefore says nothing about its prediction."
)
SEED = 1
IMAGES, EPOCHS = 12_000, 10
SHORT_EPOCHS, SHORT_WEIGHT = 9, -0.3
"""Of the ablation, which has half of the images."""
WEIGHT = -0.1
"""λ, the weight of the stethoscope's loss for the network: negative suppresses what it reads."""
ABLATION = Path(__file__).with_name("blind.ablation.json")


def build() -> nn.Module:
    """Return the trained network."""
    return restore(SceneNet(), "blind")


def train(material: Material) -> tuple[nn.Module, dict[str, Any]]:
    """Train with randomised contexts and the adversary; the ablation is measured only where its file is missing."""
    if not ABLATION.is_file():
        ABLATION.write_text(json.dumps(ablate(material), indent=1) + "\n", encoding="utf-8")
    network, read = fit_with_stethoscope(material.random_contexts(IMAGES), WEIGHT, EPOCHS, SEED)
    settings = {"images": IMAGES, "epochs": EPOCHS, "seed": SEED, "lambda": WEIGHT, "hidden": HIDDEN}
    ablation = json.loads(ABLATION.read_text(encoding="utf-8"))
    return network, settings | {"context_read_by_the_perceptron": read, "ablation": ablation}


def ablate(material: Material) -> dict[str, Any]:
    """Measure what the adversary and the randomised contexts achieve alone and together, in shorter trainings."""
    sets = {"usual": material.training(), "randomised": material.random_contexts()}
    trials = {
        "adversary_alone": ("usual", SHORT_WEIGHT),
        "randomised_contexts_alone": ("randomised", 0.0),
        "both": ("randomised", SHORT_WEIGHT),
    }
    figures: dict[str, Any] = {"images": len(sets["usual"]), "epochs": SHORT_EPOCHS, "lambda": SHORT_WEIGHT}
    for name, (images, weight) in trials.items():
        network, read = fit_with_stethoscope(sets[images], weight, SHORT_EPOCHS, SEED)
        figures[name] = _measure(network, material) | {"context_read_by_the_perceptron": read}
    return figures


def _measure(network: nn.Module, material: Material) -> dict[str, Any]:
    effect = measure_effects(network, material.changes())["do(context)"]
    shares = {split: measure_accuracy(network, material.held_out(split)) for split in ("standard", "adversarial")}  # type: ignore[arg-type]
    return {"do(context)": effect, "accuracy": {split: one["accuracy"] for split, one in shares.items()}}
