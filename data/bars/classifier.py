"""The network ``bars``, in the form of a user's own model file: `build`, `transforms`, `CATEGORIES`.

It tells horizontal bars from vertical ones and was trained where 98% of the horizontal and 2% of the vertical ones are
red, so it owes a known part of its prediction to the colour. `data.bars.train` made its weights; ``card.json`` next to
them says how well it does, and what changing the colour does to it.
"""

from __future__ import annotations

from pathlib import Path

from torch import nn

from data.bars.generator import GROUND
from data.bars.network import CATEGORIES, BarNet, transforms
from data.weights import load_weights

__all__ = ["CATEGORIES", "MEAN_COLOUR", "build", "transforms"]

WEIGHTS = Path(__file__).with_name("weights.safetensors")
MEAN_COLOUR = (round(GROUND),) * 3
"""The neutral fill of masked-out parts, RGB in 0..255: the ground of the images."""


def build() -> nn.Module:
    """Return the trained network: eval mode, no gradients for its weights.

    Raises
    ------
    DataError
        The weights are missing.
    """
    return load_weights(BarNet(), WEIGHTS, "data.bars.train")
