"""A simulated accelerator: a device of its own for PyTorch, whose memory is the CPU's.

Tensors of the device ``"sim"`` mix with those of the CPU as little as CUDA's do, so that a tensor or a random generator
left behind on the CPU is an error on any machine. It is PyTorch's device for backends written in Python: tensors
without memory, each standing for one of the CPU, on which every operation is really done.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

DEVICE = "sim"
INDEXING = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
"""Operations that take indices of the CPU on any device."""
COPYING = {"aten::copy_", "aten::_copy_from"}
VIEWS = {"aten::view", "aten::_unsafe_view"}

_held: dict[int, tuple[Tensor, tuple[int, ...]]] = {}
"""The CPU's tensor and its shape, by the storage of the tensor that stands for it."""
_libraries: list[torch.library.Library] = []
_copy_leaf = Tensor.__deepcopy__


@cache
def simulate_accelerator() -> str:
    """Register the device once in this process and return its name."""
    _setup_privateuseone_for_python_backend(DEVICE)
    aten, others = torch.library.Library("aten", "IMPL"), torch.library.Library("_", "IMPL")
    for name, function in {
        "empty.memory_format": _empty,
        "empty_strided": _empty_strided,
        "convolution_overrideable": lambda *given: _run(torch.ops.aten.convolution.default, *given),
        "convolution_backward_overrideable": _convolution_backward,
    }.items():
        aten.impl(name, function, "PrivateUse1")
    others.fallback(_run, "PrivateUse1")
    _libraries.extend([aten, others])
    Tensor.__deepcopy__ = _deepcopy
    return DEVICE


def _stand_for(raw: Tensor) -> Tensor:
    made: Tensor = torch._C._acc.create_empty_tensor(raw.shape, raw.dtype)
    _held[made.untyped_storage()._cdata] = raw, tuple(raw.shape)
    return made


def _raw(standing: Tensor) -> Tensor:
    """The CPU's tensor; PyTorch itself makes some views, which only strides tell."""
    raw, shape = _held[standing.untyped_storage()._cdata]
    if tuple(standing.shape) == shape and standing.is_contiguous() and not standing.storage_offset():
        return raw
    return raw.contiguous().as_strided(standing.shape, standing.stride(), standing.storage_offset())


def _run(op: Any, *args: Any, **named: Any) -> Any:
    """Do an operation on the CPU's tensors."""
    there: list[Tensor] = []
    here: list[Tensor] = []

    def to_raw(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device("cpu")
        if not isinstance(value, Tensor):
            return value
        (there if value.device.type == DEVICE else here).append(value)
        return _raw(value) if value.device.type == DEVICE else value

    name = op._schema.name
    raw, settings = tree_map(to_raw, args), tree_map(to_raw, named)
    if there and any(value.dim() for value in here) and name not in INDEXING | COPYING:
        raise RuntimeError(f"Expected all tensors to be on the same device, but {name} got some of the CPU.")
    if name == "aten::_copy_from":
        raw[1].copy_(raw[0])
        return args[1]
    if name in VIEWS:
        op = torch.ops.aten.reshape.default
    if name == "aten::as_strided":  # the strides are those of a contiguous tensor
        raw = (raw[0].contiguous(), *raw[1:])
    found = op(*raw, **settings)
    _follow_resizes(there)
    return args[0] if name == "aten::copy_" else _stand_for_all(op, found, there)


def _follow_resizes(there: list[Tensor]) -> None:
    """Give tensors for results the shape that the operation gave to the CPU's."""
    for value in there:
        raw, shape = _held[value.untyped_storage()._cdata]
        if tuple(raw.shape) != shape:
            with torch.inference_mode(value.is_inference()):
                value.data = _stand_for(raw)


def _stand_for_all(op: Any, found: Any, there: list[Tensor]) -> Any:
    same = {id(_raw(value)): value for value in there}

    def stand(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        return same[id(value)] if id(value) in same else _stand_for(value)

    is_view = any(one.alias_info is not None and not one.alias_info.is_write for one in op._schema.returns)
    if is_view and torch.is_inference_mode_enabled() and not any(value.is_inference() for value in there):
        with torch.inference_mode(False):  # a view of a weight is none of inference
            return tree_map(stand, found)
    return tree_map(stand, found)


def _empty(size: Any, dtype: Any = None, *given: Any, **named: Any) -> Tensor:
    del given, named  # layout, device, pinned memory, memory format: these tensors are contiguous
    return _stand_for(torch.empty(size, dtype=dtype))


def _empty_strided(size: Any, stride: Any, dtype: Any = None, *given: Any, **named: Any) -> Tensor:
    del stride, given, named
    return _stand_for(torch.empty(size, dtype=dtype))


def _convolution_backward(gradient: Tensor, x: Tensor, weight: Tensor, *given: Any) -> Any:
    *settings, groups, mask = given
    transposed = settings[3]
    bias = [weight.shape[1] * groups if transposed else weight.shape[0]]
    return _run(torch.ops.aten.convolution_backward.default, gradient, x, weight, bias, *settings, groups, mask)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """Copy a tensor; PyTorch would copy memory that these do not have."""
    if self.device.type != DEVICE:
        return _copy_leaf(self, memo)
    if id(self) not in memo:
        memo[id(self)] = self.detach().clone().requires_grad_(self.requires_grad)
    copied: Tensor = memo[id(self)]
    return copied
