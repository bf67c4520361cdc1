"""What a call does on the simulated accelerator, counted: where the processor waits, and the passes of the network.

The counts are exact on any machine. They are the proof that a call on a GPU does not wait for each image, point or
sample, and that its passes are full; they are not its seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tests.core.accelerator import COPYING, DEVICE, INDEXING, watchers

COLOURS = 3
"""Channels by which a network's first convolution is told from the others."""
READING = {"_local_scalar_dense", "equal", "nonzero", "masked_select", "unique_dim", "_unique2", "is_nonzero"}
"""Operations whose result a processor reads, or whose shape depends on values."""


@dataclass
class DeviceWork:
    """What a call did on the device.

    Attributes
    ----------
    waits
        How often the processor waited for the device, by cause. CUDA waits for all that was queued before a value or
        a tensor is read, and before a copy from the CPU too unless it is `non_blocking`.
    forwards, backwards
        Number of images in each pass of the network, in order.
    float64
        Number of values that operations in float64 took in.
    """

    waits: Counter[str] = field(default_factory=Counter)
    forwards: list[int] = field(default_factory=list)
    backwards: list[int] = field(default_factory=list)
    float64: int = 0

    @property
    def total_waits(self) -> int:
        """Number of waits whatever their cause."""
        return self.waits.total()

    def note(self, name: str, args: tuple[Any, ...]) -> None:
        """Count one operation on the device."""
        cause = _find_cause(name, args)
        if cause:
            self.waits[cause] += 1
        if name in ("aten::convolution", "aten::convolution_backward"):
            weight = args[1] if name == "aten::convolution" else args[2]
            passes = self.forwards if name == "aten::convolution" else self.backwards
            passes += [len(args[0])] if weight.shape[1] == COLOURS else []
        if name not in COPYING:
            self.float64 += sum(one.numel() for one in _tensors(args) if one.dtype == torch.float64)


@contextmanager
def count_device_work() -> Iterator[DeviceWork]:
    """Count what is done on the simulated device meanwhile."""
    work = DeviceWork()
    watchers.append(work.note)
    try:
        yield work
    finally:
        watchers.remove(work.note)


def _find_cause(name: str, args: tuple[Any, ...]) -> str:
    """Return why the processor waits for this operation; "" where it does not."""
    short = name.removeprefix("aten::")
    if name == "aten::_copy_from":
        if args[1].device.type != DEVICE:
            return "to the CPU"
        blocking = args[0].device.type != DEVICE and not (len(args) > 2 and args[2])
        return "to the device" if blocking else ""
    if name in INDEXING:
        indices = [one for one in args[1] if isinstance(one, Tensor)]
        if any(one.dtype in (torch.bool, torch.uint8) for one in indices):
            return "indices by truth"
        return "indices to the device" if any(one.device.type != DEVICE for one in indices) else ""
    return short if short in READING else ""


def _tensors(args: tuple[Any, ...]) -> list[Tensor]:
    flat = [one for arg in args for one in (arg if isinstance(arg, list | tuple) else [arg])]
    return [one for one in flat if isinstance(one, Tensor) and one.device.type == DEVICE]
