"""A simulated accelerator: a device of its own for PyTorch, whose memory is the CPU's.

Tensors of the device ``"sim"`` mix with those of the CPU as little as CUDA's do, so that a tensor or a random generator
left behind on the CPU is an error on any machine. It is PyTorch's device for backends written in Python: tensors
without memory, each standing for one of the CPU, on which every operation is really done. A process has to make it
before its first gradient, so the tests of a file that needs it run in a process of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from core.network.device import exact_arithmetic

OWN_PROCESS = "FORETELL_SIMULATED_ACCELERATOR"
"""Set in the process of their own in which the tests of a file run."""
DEVICE = "sim"
INDEXING = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
"""Operations on a tensor of any device that take indices of the CPU."""
COPYING = {"aten::copy_", "aten::_copy_from"}
VIEWS = {"aten::view", "aten::_unsafe_view"}

inexact_gradients: list[tuple[int, ...]] = []
"""Shapes of the weights of convolutions whose gradient a GPU would have computed in TensorFloat-32, as it does unless
told otherwise (`core.network.device.exact_arithmetic`)."""
moved_to_cpu: list[int] = []
"""Number of values of each tensor that was moved from the device to the CPU."""
watchers: list[Callable[[str, tuple[Any, ...]], None]] = []
"""Each is called with the name and the positional arguments of every operation that is done on the device."""
_held: dict[int, tuple[Tensor, tuple[int, ...], StorageWeakRef]] = {}
"""The CPU's tensor and its shape, by the storage of the tensor that stands for it."""
_SWEEP = 2**27
"""Bytes made between two searches for tensors that no one uses any more."""
_bytes = [0]
_libraries: list[torch.library.Library] = []
_copy_leaf = Tensor.__deepcopy__


@contextmanager
def open_accelerator() -> Iterator[str]:
    """Return the GPU where there is one, with exact arithmetic, else the simulated device in a process of its own.

    Catches a gradient in TensorFloat-32, which is a tenth off on a GPU (decision 69).
    """
    if torch.cuda.is_available():
        with exact_arithmetic(torch.device("cuda")):
            yield "cuda"
        return
    if OWN_PROCESS not in os.environ:
        pytest.skip("run by test_everything_in_a_process_of_its_own")
    inexact_gradients.clear()
    yield simulate_accelerator()
    assert not inexact_gradients


def run_in_own_process(file: str) -> int:
    """Run the tests of a file on the simulated device; return how many passed, none of which failed."""
    if OWN_PROCESS in os.environ or torch.cuda.is_available():
        pytest.skip("this is that process, or the other tests run on the GPU")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", file]
    environment = os.environ | {OWN_PROCESS: "1"}
    inherited = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, env=inherited, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout.split()[0].count(".")


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
        "constant_pad_nd": lambda *given: _run(torch.ops.aten.constant_pad_nd.default, *given),
        "affine_grid_generator": lambda *given: _run(torch.ops.aten.affine_grid_generator.default, *given),
    }.items():
        aten.impl(name, function, "PrivateUse1")
    others.fallback(_run, "PrivateUse1")
    _libraries.extend([aten, others])
    Tensor.__deepcopy__ = _deepcopy
    return DEVICE


def _stand_for(raw: Tensor) -> Tensor:
    made: Tensor = torch._C._acc.create_empty_tensor(raw.shape, raw.dtype)
    storage = made.untyped_storage()
    _held[storage._cdata] = raw, tuple(raw.shape), StorageWeakRef(storage)
    _bytes[0] += raw.nbytes
    if _bytes[0] > _SWEEP:
        _bytes[0] = 0
        for key, (*_, used) in list(_held.items()):
            if used.expired():
                _held.pop(key, None)
    return made


def _raw(standing: Tensor) -> Tensor:
    """The CPU's tensor; PyTorch itself makes some views, which only strides tell."""
    raw, shape, _ = _held[standing.untyped_storage()._cdata]
    if tuple(standing.shape) == shape and standing.is_contiguous() and not standing.storage_offset():
        return raw
    whole, *part = _as_part(raw, standing.shape, standing.stride(), standing.storage_offset())
    return whole.as_strided(*part)


def _as_part(raw: Tensor, size: Any, stride: Any, offset: int | None = None) -> tuple[Any, ...]:
    """Return what `as_strided` takes: strides are those of a contiguous tensor, and the offset counts from its own."""
    whole = raw.contiguous()
    return whole, size, stride, whole.storage_offset() + (offset or 0)


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
    for watch in watchers:
        watch(name, args)
    raw, settings = tree_map(to_raw, args), tree_map(to_raw, named)
    _refuse_mixture(name, args, named, here if there else [])
    if name == "aten::_copy_from":
        if args[1].device.type != DEVICE:
            moved_to_cpu.append(args[0].numel())
        raw[1].copy_(raw[0])
        return args[1]
    if name in VIEWS:
        op = torch.ops.aten.reshape.default
    if name == "aten::as_strided":
        raw = _as_part(*raw)
    found = op(*_wrap_numbers(op, raw), **settings)
    _follow_resizes(there)
    return args[0] if name == "aten::copy_" else _stand_for_all(op, found, there)


def _wrap_numbers(op: Any, values: Any) -> list[Any]:
    """Make tensors of numbers where the operation takes nothing else: PyTorch has unwrapped them on the way here."""
    kinds = [str(argument.type) for argument in op._schema.arguments]
    return [
        torch.tensor(value) if kind == "Tensor" and isinstance(value, int | float) else value
        for kind, value in zip(kinds, values, strict=False)
    ]


def _refuse_mixture(name: str, args: Any, named: dict[str, Any], here: list[Tensor]) -> None:
    """Refuse tensors of the CPU next to the device's, and the CPU's random numbers for the device."""
    if any(isinstance(value, torch.Generator) for value in (*args, *named.values())):
        raise RuntimeError(f"Expected a '{DEVICE}' device type for generator but found 'cpu' in {name}.")
    if name in INDEXING:
        here = [value for value in (args[0], *args[2:3]) if isinstance(value, Tensor) and value.device.type != DEVICE]
    if any(value.dim() for value in here) and name not in COPYING:
        raise RuntimeError(f"Expected all tensors to be on the same device, but {name} got some of the CPU.")


def _follow_resizes(there: list[Tensor]) -> None:
    """Give tensors for results the shape that the operation gave to the CPU's."""
    for value in there:
        raw, shape, _ = _held[value.untyped_storage()._cdata]
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
    if torch.backends.cudnn.allow_tf32:
        inexact_gradients.append(tuple(weight.shape))
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
