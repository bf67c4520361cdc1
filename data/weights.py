"""Read the committed weights of a network."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn

from data.errors import DataError


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
