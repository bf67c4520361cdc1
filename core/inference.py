"""A copy of a network for predictions and for gradients of its input: the same answers, sooner.

Nobody can hook into the copy, so its uses need no lock; the user's own module is never changed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, fx, nn
from torch.fx.experimental.optimization import fuse

TOLERANCE = 1e-4
"""Largest difference of logits, relative to the largest logit, that folding may make in float32."""


def faster_copy(module: nn.Module, probe: Tensor) -> nn.Module:
    """A channels-last copy with batch norms folded into convolutions, as far as the network allows.

    Each form is tried on ``probe`` (B, C, H, W) and kept only if it gives the network's own logits; a network that
    cannot be traced is only copied, one that cannot be copied is used as it is.
    """
    with torch.inference_mode(False):  # tensors made in inference mode could never be differentiated through
        return _first_faithful(module, probe)


def _first_faithful(module: nn.Module, probe: Tensor) -> nn.Module:
    forms: tuple[Callable[[nn.Module], nn.Module], ...] = (_folded, _channels_last)
    for form in forms:
        try:
            candidate = form(module)
            if _same(candidate, module, probe):
                return candidate.requires_grad_(False)
        except Exception:  # tracing runs the user's own code, which may raise anything
            continue
    return module


def _channels_last(module: nn.Module) -> nn.Module:
    laid_out: nn.Module = copy.deepcopy(module).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return laid_out


def _folded(module: nn.Module) -> nn.Module:
    folded: nn.Module = fuse(fx.symbolic_trace(copy.deepcopy(module)), inplace=True)
    return _channels_last(folded)


@torch.inference_mode()
def _same(candidate: nn.Module, module: nn.Module, probe: Tensor) -> bool:
    expected, found = module(probe.clone()), candidate(probe.contiguous(memory_format=torch.channels_last).clone())
    scale = max(1.0, float(expected.abs().max()))
    return bool((found - expected).abs().max() <= TOLERANCE * scale)
