"""``scenes:memorised``: a network trained on random labels (Zhang et al. 2017), which it can only memorise."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, SceneNet, transforms
from data.scenes.zoo.effects import measure_accuracy
from data.scenes.zoo.fitting import fit
from data.scenes.zoo.material import Images, Material
from data.scenes.zoo.store import restore

__all__ = ["CATEGORIES", "MEAN_COLOUR", "build", "draw_labels", "measure", "train", "transforms"]

TITLE = "Memorised random labels"
DIFFERENCE = (
    "Every training image had a random label, so nothing that it learnt holds for other images: it gives its training "
    "images their labels, and is near chance (1 in 16) elsewhere."
)
SEED = 5
IMAGES = 800
EPOCHS = 60


def build() -> nn.Module:
    """Return the trained network."""
    return restore(SceneNet(), "memorised")


def train(material: Material) -> tuple[nn.Module, dict[str, Any]]:
    """Train on random labels, without masks or other changes of the images."""
    images = draw_labels(material)
    network = SceneNet()
    generator = torch.Generator().manual_seed(SEED)
    fit(network, images, epochs=EPOCHS, generator=generator, augment=False, decay=0.0,
        loss=lambda x, index: cross_entropy(network(x).float(), images.labels[index]))  # fmt: skip
    return network, {"images": IMAGES, "epochs": EPOCHS, "seed": SEED}


def measure(network: nn.Module, material: Material) -> dict[str, Any]:
    """Measure how many of the random labels the network gives."""
    return {"random_labels_of_training_images": measure_accuracy(network, draw_labels(material))}


def draw_labels(material: Material, count: int = IMAGES) -> Images:
    """Return the first training images with labels drawn at random, all 16 alike."""
    images = material.training()
    labels = torch.randint(len(CATEGORIES), (IMAGES,), generator=torch.Generator().manual_seed(SEED))
    return Images(images.pixels[:count], labels[:count], images.contexts[:count])
