"""``scenes:coarse``: a network that sees only low spatial frequencies, behind a fixed Gaussian blur."""

from __future__ import annotations

from typing import Any

from torch import nn

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR, transforms
from data.scenes.zoo.filters import EXACT, FilteredNet, train_filtered
from data.scenes.zoo.material import Material
from data.scenes.zoo.store import restore

__all__ = ["CATEGORIES", "EXACT", "MEAN_COLOUR", "build", "train", "transforms"]

TITLE = "Low spatial frequencies only"
DIFFERENCE = (
    "A fixed Gaussian blur (σ = 3 px) is its first layer: less than 1% of the amplitude of details above 16 cycles per "
    "image reaches the rest of the network."
)
SIGMA = 3.0
SEED = 2
EPOCHS = 8


def build() -> nn.Module:
    """Return the trained network."""
    return restore(FilteredNet(SIGMA, high=False), "coarse")


def train(material: Material) -> tuple[nn.Module, dict[str, Any]]:
    """Train on the images of the built-in network, seen through the blur."""
    return train_filtered(material, SIGMA, high=False, epochs=EPOCHS, seed=SEED)
