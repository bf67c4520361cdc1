"""One more relative, in the form of a user's own model file: its attributes are in ``card.json``.

To see whether they are found: ``python foretell.py layers attributes --model data/scenes/relatives/example.py:build``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import nn

from data.scenes.classifier import CATEGORIES, MEAN_COLOUR
from data.scenes.relatives.networks import build_relative, transforms
from data.weights import load_weights

__all__ = ["CATEGORIES", "MEAN_COLOUR", "build", "read_card", "transforms"]

WEIGHTS = Path(__file__).with_name("example.safetensors")
CARD = Path(__file__).with_name("card.json")


def build() -> nn.Module:
    """Return the trained network: eval mode, no gradients for its weights.

    Raises
    ------
    DataError
        The weights are missing.
    """
    return load_weights(build_relative(read_card()["example"]), WEIGHTS, "data.scenes.relatives.train")


def read_card() -> dict[str, Any]:
    """Read how the relatives were trained, their accuracy, and the attributes of the example."""
    card: dict[str, Any] = json.loads(CARD.read_text(encoding="utf-8"))
    return card
