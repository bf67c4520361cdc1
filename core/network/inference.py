"""Faster copies of a network with the same outputs, one for gradients of its input and one for predictions.

Nobody can hook into a copy, so its uses need no lock; the user's own module is never changed.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.experimental.optimization import fuse
from torch.nn.modules.conv import _ConvNd

from core.network.cpu import fuse_layers
from core.network.device import exact_arithmetic
from core.network.self_attention import split_attention

TOLERANCE = 1e-4
"""Largest difference of logits, relative to the largest logit, that folding may make in float32."""

_COMPILING = threading.Lock()
"""Held while a network is traced or compiled: torch keeps what it needs meanwhile in places all threads share."""


class _Tracer(fx.Tracer):
    """Follows the calls of the thread that made it.

    While torch traces, every module of the process is called through the tracer. Other threads, which ask their own
    networks meanwhile, would fail there, or have their calls written into this graph.
    """

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if threading.get_ident() != self._thread:
            return forward(*args, **kwargs)
        return super().call_module(m, forward, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, fx.Proxy]) -> Any:
        if threading.get_ident() != self._thread:
            return attr_val
        return super().getattr(attr, attr_val, parameter_proxy_cache)


def unwrap_compiled(module: nn.Module) -> nn.Module:
    """Return a network without `torch.compile`, which hides its layers and lets no second pass through its gradients.

    Its parts share weights and buffers with the given network, which is unchanged.
    """
    module = getattr(module, "_orig_mod", module)
    compiled = [part for part in module.modules() if _is_compiled(part)]
    if not compiled:
        return module
    known: dict[int, Any] = {id(t): t for t in [*module.parameters(), *module.buffers()]}
    for part in reversed(compiled):  # inner ones first
        if hasattr(part, "_orig_mod"):
            known[id(part)] = copy.deepcopy(part._orig_mod, known)
    return copy.deepcopy(module, known)  # which leaves out what module.compile() adds


def _is_compiled(part: nn.Module) -> bool:
    return hasattr(part, "_orig_mod") or getattr(part, "_compiled_call_impl", None) is not None


def make_faster_copy(module: nn.Module, probe: Tensor) -> nn.Module:
    """Make a channels-last copy with batch norms folded into convolutions, as far as the network allows.

    Each form is tried on ``probe`` (B, C, H, W) and kept only if it gives the network's own logits; a network that
    cannot be traced is only copied, one that cannot be copied is used as it is. Its gradients differ from the network's
    where rounding moves a value over the kink of a ReLU: by up to 3.6% on densenet121, far less on most.
    """
    # Tensors made in inference mode could never be differentiated through.
    with _COMPILING, torch.inference_mode(False), exact_arithmetic(probe.device):
        return _first_faithful(module, probe)


def _first_faithful(module: nn.Module, probe: Tensor) -> nn.Module:
    forms: tuple[Callable[[nn.Module], nn.Module], ...] = (_fold_batch_norms, _channels_last)
    for form in forms:
        try:
            candidate = form(module)
            if _same(candidate, module, probe):
                return _for_gradients_of_inputs(candidate)
        except Exception:  # tracing runs the user's own code, which may raise anything
            continue
    return module


def _for_gradients_of_inputs(network: nn.Module) -> nn.Module:
    """Let weights need no gradient, except those of attention that is no `SelfAttention`.

    Its inputs are transposed, and torch multiplies a transposed batch by weights without a gradient image by image,
    which takes half as long again. Callers ask for gradients of inputs alone, so weights get none in any case.
    """
    network.requires_grad_(False)
    for module in network.modules():
        if type(module) is nn.MultiheadAttention:
            module.requires_grad_(True)
    return network


def make_fused_copy(network: nn.Module, probe: Tensor) -> nn.Module:
    """Copy a network of `make_faster_copy` for predictions only, each layer fused with the next operations.

    About twice as fast on a CPU (docs/decisions/0040-fused-layers.md). The copy itself where it may take several
    ways (only what was traced symbolically takes one), on other devices, and where the outputs are not the same.
    """
    if not isinstance(network, fx.GraphModule) or probe.device.type != "cpu":
        return network
    # Another number of inputs, with other values, than what the program was made with.
    others = probe + torch.randn(3, *probe.shape[1:], generator=torch.Generator().manual_seed(0))
    with torch.inference_mode(False), torch.no_grad():
        try:
            program = fuse_layers(network, probe.contiguous(memory_format=torch.channels_last))
            return program if all(_same(program, network, inputs) for inputs in (probe, others)) else network
        except Exception:  # what oneDNN cannot do, or is not there to do, is no fault of the network
            return network


def make_prediction_copy(network: nn.Module, probe: Tensor, precision: torch.dtype) -> nn.Module:
    """Return `make_fused_copy`, which is float32; for another ``precision``, a copy to run while `use_precision`.

    Its convolutions and linear layers have their weights in ``precision``, which would be converted in every pass.
    """
    if precision == torch.float32:
        return make_fused_copy(network, probe)
    short = copy.deepcopy(network)
    for module in short.modules():
        if isinstance(module, nn.Linear | _ConvNd):
            module.to(precision)
    return short


def use_precision(device: torch.device, precision: torch.dtype) -> AbstractContextManager[None]:
    """Return what predictions run in: PyTorch's autocast to ``precision`` where it is not float32."""
    return nullcontext() if precision == torch.float32 else torch.autocast(device.type, precision)


def _channels_last(module: nn.Module) -> nn.Module:
    laid_out: nn.Module = copy.deepcopy(module).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return split_attention(laid_out)


def _fold_batch_norms(module: nn.Module) -> nn.Module:
    own = split_attention(copy.deepcopy(module))
    traced = fx.GraphModule(own, _Tracer().trace(own))
    return _channels_last(fuse(traced, inplace=True, no_trace=True))


@torch.inference_mode()
def _same(candidate: nn.Module, module: nn.Module, probe: Tensor) -> bool:
    expected, actual = module(probe.clone()), candidate(probe.contiguous(memory_format=torch.channels_last).clone())
    scale = max(1.0, float(expected.abs().max()))
    return bool((actual - expected).abs().max() <= TOLERANCE * scale)
