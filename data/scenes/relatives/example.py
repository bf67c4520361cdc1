"""One more relative, in the form of a user's own model file: its attributes are in ``card.json``.

To see whether they are found: ``python foretell.py layers attributes --model data/scenes/relatives/example.py:build``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn

from data.errors import DataError
from data.scenes.classifier import CATEGORIES, MEAN_COLOUR
from data.scenes.relatives.networks import build_relative, transforms

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
    if not WEIGHTS.is_file():
        raise DataError(f"The weights {WEIGHTS} are missing. Create them again: python -m data.scenes.relatives.train")
    network = build_relative(read_card()["example"])
    network.load_state_dict({name: value.float() if value.dtype == torch.float16 else value
                             for name, value in load_file(WEIGHTS).items()})  # fmt: skip
    return network.eval().requires_grad_(False)


def read_card() -> dict[str, Any]:
    """Read how the relatives were trained, their accuracy, and the attributes of the example."""
    card: dict[str, Any] = json.loads(CARD.read_text(encoding="utf-8"))
    return card
