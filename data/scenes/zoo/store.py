"""Weights and cards of the zoo: half precision in safetensors, JSON next to it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from data.errors import DataError
from data.weights import load_weights

FOLDER = Path(__file__).parent
PREFIX = "scenes:"
"""Of the names of the zoo, as commands and study files give them."""


def store(network: nn.Module, name: str, exact: tuple[str, ...] = ()) -> None:
    """Write the weights of a network; those whose name begins with one of ``exact`` keep their precision."""
    save_file(round_weights(network, exact), _weights(name))


def round_weights(network: nn.Module, exact: tuple[str, ...] = ()) -> dict[str, Tensor]:
    """Return the weights of a network as `store` writes them."""
    return {key: _round(key, value, exact) for key, value in network.state_dict().items()}


def read_weights(name: str) -> dict[str, Tensor]:
    """Return the stored weights of a network, in their stored precision."""
    return load_file(_weights(name))


def hash_weights(name: str) -> str:
    """Return the SHA-256 of the file of a network's weights."""
    return hashlib.sha256(_weights(name).read_bytes()).hexdigest()


def restore(network: nn.Module, name: str) -> nn.Module:
    """Return the network with its stored weights: eval mode, no gradients for its weights.

    Raises
    ------
    DataError
        The weights are missing.
    """
    return load_weights(network, _weights(name), f"data.scenes.zoo.train {name}")


def halve(network: nn.Module) -> None:
    """Round all weights of a network to half precision in place, as `store` does."""
    with torch.no_grad():
        for value in network.state_dict().values():
            if value.is_floating_point():
                value.copy_(value.half())


def write_card(name: str, card: dict[str, Any]) -> None:
    """Write the card of a network."""
    _card(name).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def read_card(name: str) -> dict[str, Any]:
    """Read the card of a network: accuracy per split, effects of interventions, how it was trained.

    Raises
    ------
    DataError
        There is no such network.
    """
    file = _card(name)
    if not file.is_file():
        raise DataError(f"There is no card {file}. Create it again: python -m data.scenes.zoo.train {name}")
    card: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return card


def _weights(name: str) -> Path:
    return FOLDER / f"{name.removeprefix(PREFIX)}.safetensors"


def _card(name: str) -> Path:
    return FOLDER / f"{name.removeprefix(PREFIX)}.json"


def _round(key: str, value: Tensor, exact: tuple[str, ...]) -> Tensor:
    if value.is_floating_point() and not key.startswith(exact or ("\0",)):
        return value.half().contiguous()
    return value.contiguous()
