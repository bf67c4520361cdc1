"""The last linear layer of a network, and the network without it."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from core.errors import ForetellError


def split_head(module: nn.Module, probe: Tensor, name: str) -> tuple[nn.Module, nn.Linear]:
    """Return a network without its last linear layer (a copy that shares the weights), and that layer.

    Raises
    ------
    ForetellError
        The logits of ``probe`` (B, C, H, W) are not those of a last linear layer.
    """
    linears = [(layer, m) for layer, m in module.named_modules() if isinstance(m, nn.Linear)]
    shared = {id(t): t for t in [*module.parameters(), *module.buffers()]}
    if not linears or not linears[-1][0]:
        raise _no_linear_head(name)
    layer, linear = linears[-1]
    parent, _, attribute = layer.rpartition(".")
    try:
        trunk = copy.deepcopy(module, shared)
        setattr(trunk.get_submodule(parent), attribute, nn.Identity())
        fits = _check_split(module, trunk, linear, probe)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # the user's own code, which may not run without its last layer
        raise _no_linear_head(name) from error
    if not fits:
        raise _no_linear_head(name)
    return trunk, linear


@torch.no_grad()
def _check_split(module: nn.Module, trunk: nn.Module, linear: nn.Linear, probe: Tensor) -> bool:
    features, logits = trunk(probe.clone()), module(probe.clone())
    if features.ndim != 2 or features.shape[1] != linear.in_features:
        return False
    return torch.allclose(linear(features).float(), logits.float(), rtol=1e-4, atol=1e-4)


def _no_linear_head(name: str) -> ForetellError:
    return ForetellError(
        f"{name} does not end in one linear layer, which teaching by examples needs. "
        "Use a classifier whose logits are nn.Linear(features); heatmaps still work."
    )
