"""Where and in what portions a network runs: device, chunks within a memory budget, random streams."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from core.errors import ForetellError

MEMORY_BUDGET = int(os.environ.get("FORETELL_MEMORY_MIB", "256")) * 2**20
"""Bytes of activations one forward pass may take; the environment's ``FORETELL_MEMORY_MIB`` says otherwise."""

ACTIVATIONS_PER_INPUT = 64
"""A convolutional network's live activations take some tens of times its input's memory; a guess on the safe
side, corrected by halving when the device says it was too much."""


def default_device() -> torch.device:
    """The accelerator if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def find_device(name: str) -> torch.device:
    """``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...: a device that is there.

    Raises
    ------
    ForetellError
        It is not: says which are.
    """
    there = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    there += [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    if name not in there:
        raise ForetellError(f"There is no device {name!r} here. There is: {', '.join(there)}.")
    return torch.device(name)


def arithmetic(device: torch.device) -> str:
    """What sums are made with, as far as torch tells: another processor or number of threads rounds differently."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} thread(s)"


@contextmanager
def one_thread() -> Iterator[None]:
    """This thread's sums are made without sharing them out meanwhile: how many would share them changes the last digit.

    Work that is to come out the same on any number of cores is shared out among processes instead.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def chunk_size(example: Tensor, budget: int = MEMORY_BUDGET) -> int:
    """How many inputs shaped like ``example`` (C, H, W) one forward pass may take within ``budget`` bytes."""
    per_input = example.numel() * example.element_size() * ACTIVATIONS_PER_INPUT
    return max(1, min(256, budget // per_input))


def in_chunks(forward: Callable[[Tensor], Tensor], inputs: Tensor, chunk: int) -> Tensor:
    """``forward`` over ``inputs`` (N, ...) in chunks; out of memory halves the chunk and goes on.

    Raises
    ------
    torch.OutOfMemoryError
        When even one input does not fit.
    """
    return torch.cat(list(_chunks(forward, inputs, chunk)))


def _chunks(forward: Callable[[Tensor], Tensor], inputs: Tensor, chunk: int) -> Iterator[Tensor]:
    start = 0
    while start < len(inputs):
        try:
            output = forward(inputs[start : start + chunk])
        except torch.OutOfMemoryError:
            if chunk == 1:
                raise
            chunk = max(1, chunk // 2)
            continue
        yield output
        start += chunk


def stream(seed: int, block: int) -> torch.Generator:
    """The ``block``-th independent random stream of ``seed``, always on the CPU.

    Random numbers are drawn in fixed blocks, each from its own stream, so a result does not depend on the
    chunk size, on the device, or on where a resumed run began.
    """
    # SplitMix64's odd constant spreads neighbouring blocks over the seed space.
    mixed = (seed + (block + 1) * 0x9E3779B97F4A7C15) % 2**63
    return torch.Generator().manual_seed(mixed)


def draw_seed(generator: torch.Generator) -> int:
    """A fresh 62-bit seed from ``generator``, for `stream`."""
    return int(torch.randint(2**62, (1,), generator=generator).item())
