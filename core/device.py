"""Device, chunks within a memory budget, and random streams of a network's passes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from core.errors import ForetellError

MEMORY_BUDGET = int(os.environ.get("FORETELL_MEMORY_MIB", "256")) * 2**20
"""Bytes of activations that one forward pass may take; ``FORETELL_MEMORY_MIB`` overrides it."""

ACTIVATIONS_PER_INPUT = 64
"""A convolutional network's live activations take some tens of times its input's memory; a guess on the safe
side, corrected by halving when the device runs out of memory."""


def default_device() -> torch.device:
    """Return the accelerator if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def find_device(name: str) -> torch.device:
    """Find the device ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ... if it exists.

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
    """Describe the processor and threads, as far as torch reports them: others round differently."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} thread(s)"


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch single-threaded in this thread: reductions over more threads differ in the last bits.

    Work that is to come out the same on any number of cores is shared out among processes instead.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def chunk_size(example: Tensor, budget: int = MEMORY_BUDGET) -> int:
    """Return how many inputs like ``example`` (C, H, W) one forward pass may take within ``budget`` bytes."""
    per_input = example.numel() * example.element_size() * ACTIVATIONS_PER_INPUT
    return max(1, min(256, budget // per_input))


def in_chunks(forward: Callable[[Tensor], Tensor], inputs: Tensor, chunk: int) -> Tensor:
    """Run ``forward`` over ``inputs`` (N, ...) in chunks; halve the chunk when the device is out of memory.

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
    """Return the ``block``-th independent random stream of ``seed``, always on the CPU.

    Random numbers are drawn in fixed blocks, each from its own stream, so a result does not depend on the
    chunk size, on the device, or on where a resumed run began.
    """
    # SplitMix64's odd constant spreads neighbouring blocks over the seed space.
    mixed = (seed + (block + 1) * 0x9E3779B97F4A7C15) % 2**63
    return torch.Generator().manual_seed(mixed)


def draw_seed(generator: torch.Generator) -> int:
    """Draw a 62-bit seed from ``generator``, for `stream`."""
    return int(torch.randint(2**62, (1,), generator=generator).item())
