"""``scenes:aware``: a network that knows the context of an object and does not use it.

An auxiliary neural stethoscope (Fuchs et al. 2018) keeps the context in the features; contexts that are drawn
independently of the object keep it out of the prediction.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, SceneNet, transforms
from data.scenes.classifier import build as build_scenes
from data.scenes.zoo import blind
from data.scenes.zoo.material import Material
from data.scenes.zoo.stethoscope import HIDDEN, fit_with_stethoscope, read_contexts
from data.scenes.zoo.store import restore

__all__ = ["CATEGORIES", "MEAN_COLOUR", "build", "measure", "train", "transforms"]

TITLE = "Knows the context and does not use it"
DIFFERENCE = (
    "It was trained on the images of `scenes:blind`, with a stethoscope that reads the context from its features and "
    "whose gradient is kept. The context is in its last features, and says next to nothing about its prediction."
)
SEED = 1
IMAGES, EPOCHS = blind.IMAGES, blind.EPOCHS
WEIGHT = 1.0
"""λ, the weight of the stethoscope's loss for the network: positive promotes what it reads."""


def build() -> nn.Module:
    """Return the trained network."""
    return restore(SceneNet(), "aware")


def train(material: Material) -> tuple[nn.Module, dict[str, Any]]:
    """Train with randomised contexts and the auxiliary stethoscope."""
    network, read = fit_with_stethoscope(material.random_contexts(IMAGES), WEIGHT, EPOCHS, SEED)
    settings = {"images": IMAGES, "epochs": EPOCHS, "seed": SEED, "lambda": WEIGHT, "hidden": HIDDEN}
    return network, settings | {"context_read_by_the_perceptron": read}


def measure(network: SceneNet, material: Material) -> dict[str, Any]:
    """Measure how well the context is read from this network, from the blind one and from the built-in one.

    On adversarial scenes, whose objects are in no usual context and so do not tell it.
    """
    images = material.held_out("adversarial")
    networks = {"scenes:aware": network, "scenes:blind": blind.build(), "scenes": build_scenes()}
    return {"context_read_by_a_linear_probe": {name: read_contexts(one, images) for name, one in networks.items()}}
