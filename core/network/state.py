"""The parameters and buffers of a network: their digest, and checks for errors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from core.errors import ForetellError


def tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield parameters and buffers with their names; quantised layers keep theirs within other things."""
    for key, value in module.state_dict().items():
        for leaf in tree_leaves(value):
            if isinstance(leaf, Tensor):
                yield key, leaf.dequantize() if leaf.is_quantized else leaf


def fingerprint(module: nn.Module) -> str:
    """Return the SHA-256 over the structure and every parameter and buffer."""
    digest = hashlib.sha256(str(module).encode())
    for key, value in tensors(module):
        digest.update(f"{key}{tuple(value.shape)}{value.dtype}".encode())
        digest.update(value.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def refuse_bad_weights(module: nn.Module, name: str) -> None:
    """Raise `ForetellError` for weights that are not finite."""
    for key, value in tensors(module):
        if value.is_floating_point() and not bool(torch.isfinite(value).all()):
            raise ForetellError(f"{name} has NaN or infinite values in {key!r}. Load another checkpoint.")


def remedy(module: nn.Module) -> str:
    """Suggest a remedy for a network that fails on its first input."""
    types = {str(value.dtype).removeprefix("torch.") for _, value in tensors(module) if value.is_floating_point()}
    if types - {"float32"}:
        other = " and ".join(sorted(types - {"float32"}))
        return f"Its weights are {other} and inputs are float32: return network.float() from build()."
    return "Next to build in FILE.py, write transforms that give a tensor (C, H, W) that the network takes."
