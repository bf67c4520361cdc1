"""``scenes:fine``: a network that sees only high spatial frequencies: the image minus its Gaussian blur."""

from __future__ import annotations

from typing import Any

from torch import nn

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, transforms
from data.scenes.zoo.filters import EXACT, FilteredNet, train_filtered
from data.scenes.zoo.material import Material
from data.scenes.zoo.store import restore

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
    return train_filtered(material, SIGMA, high=True, epochs=EPOCHS, seed=SEED)
