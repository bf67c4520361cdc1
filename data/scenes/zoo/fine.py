"""``scenes:fine``: a network that sees only high spatial frequencies: the image minus its Gaussian blur."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, transforms
from data.scenes.zoo.filters import EXACT, FilteredNet
from data.scenes.zoo.fitting import fit
from data.scenes.zoo.material import Material
from data.scenes.zoo.weights import restore

__all__ = ["CATEGORIES", "EXACT", "MEAN_COLOUR", "build", "train", "transforms"]

TITLE = "High spatial frequencies only"
DIFFERENCE = (
    "Its first layer subtracts a Gaussian blur (σ = 1 px) from the image: less than 4% of the amplitude of what is "
    "below 4 cycles per image, such as the colour of a surface, reaches the rest of the network."
)
SIGMA = 1.0
SEED = 3
EPOCHS = 8


def build() -> nn.Module:
    """Return the trained network."""
    return restore(FilteredNet(SIGMA, high=True), "fine")


def train(material: Material) -> tuple[nn.Module, dict[str, Any]]:
    """Train on the images of the built-in network, less their blur."""
    images = material.training()
    network = FilteredNet(SIGMA, high=True)
    fit(network, images, epochs=EPOCHS, generator=torch.Generator().manual_seed(SEED))
    return network, {"images": len(images), "epochs": EPOCHS, "seed": SEED, "sigma_px": SIGMA}
