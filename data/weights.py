"""Write and read the committed weights of a network."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from data.errors import DataError


def save_weights(network: nn.Module, file: Path) -> None:
    """Write the network's weights to a safetensors file in half precision."""
    stored = {
        name: value.half() if value.is_floating_point() else value for name, value in network.state_dict().items()
    }
    save_file({name: value.contiguous() for name, value in stored.items()}, file)


def load_weights(network: nn.Module, file: Path, module: str) -> nn.Module:
    """Return the network with the weights of a safetensors file: eval mode, no gradients for its weights.

    Half precision becomes single. ``module`` is what ``python -m`` runs to create the file again.

    Raises
    ------
    DataError
        The weights are missing.
    """
    if not file.is_file():
        raise DataError(f"The weights {file} are missing. Create them again: python -m {module}")
    stored = load_file(file)
    network.load_state_dict({key: value.float() if value.dtype == torch.float16 else value
                             for key, value in stored.items()})  # fmt: skip
    return network.eval().requires_grad_(False)
