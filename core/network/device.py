"""Device, chunks within a memory budget, and random streams of a network's passes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import torch
from torch import Tensor

from core.errors import ForetellError

CPU = torch.device("cpu")

MEMORY_MIB = os.environ.get("FORETELL_MEMORY_MIB")
"""MiB of activations that one forward pass may take, where the user has said so."""

CPU_MIB = 256
"""The same where nothing is said, on a CPU: more does not make it faster."""

ACCELERATOR_SHARE = 1 / 8
"""The same on an accelerator, as a share of its memory: gradients keep some three times a forward pass's activations,
and another program may use it too."""

ACTIVATIONS_PER_INPUT = 64
"""A convolutional network's live activations take some tens of times its input's memory; a guess on the safe
side, corrected by halving when the device runs out of memory."""


DRAWING = 8
"""Most threads that draw random numbers for an accelerator."""


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


def describe_arithmetic(device: torch.device) -> str:
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


class _Exact:
    """How many threads want exact arithmetic now, and what PyTorch's switch, which all share, was before."""

    lock = threading.Lock()
    users = 0
    before = True


@contextmanager
def exact_arithmetic(device: torch.device) -> Iterator[None]:
    """Compute convolutions on a GPU in float32 and not, as PyTorch does unless told otherwise, in TensorFloat-32.

    Its 10 bits move logits by some 5e-4 of the largest, but gradients of a random resnet50 by a tenth: where a value is
    moved over the kink of a ReLU.
    """
    if device.type == "cpu":
        yield
        return
    with _Exact.lock:
        if not _Exact.users:
            _Exact.before, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False
        _Exact.users += 1
    try:
        yield
    finally:
        with _Exact.lock:
            _Exact.users -= 1
            if not _Exact.users:
                torch.backends.cudnn.allow_tf32 = _Exact.before


def chunk_size(example: Tensor, device: torch.device | None = None) -> int:
    """Return how many inputs like ``example`` (C, H, W) one forward pass on ``device`` (its own) may take."""
    per_input = example.numel() * example.element_size() * ACTIVATIONS_PER_INPUT
    return max(1, min(256, memory_budget(device or example.device) // per_input))


def memory_budget(device: torch.device) -> int:
    """Return the bytes of activations that one forward pass on ``device`` may take."""
    if MEMORY_MIB is not None:
        return int(MEMORY_MIB) * 2**20
    if device.type != "cuda":
        return CPU_MIB * 2**20
    return int(torch.cuda.get_device_properties(device).total_memory * ACCELERATOR_SHARE)


def send(values: Tensor, device: torch.device, *, copy: bool = False) -> Tensor:
    """Move values to ``device``, without waiting for what an accelerator still computes; ``copy`` also those there.

    A copy to the CPU waits: it would else be read before it is made.
    """
    return values.to(device, non_blocking=device.type != "cpu", copy=copy)


def shares_passes(device: torch.device) -> bool:
    """Tell whether several images share a pass.

    Not on a CPU: a pass that is full with one image is no faster with two, and other sizes change the last bits, which
    what was frozen on a CPU depends on.
    """
    return device.type != "cpu"


def in_common_passes(
    run: Callable[[slice, slice], None], points: int, images: int, chunk: int, device: torch.device
) -> None:
    """Call ``run(rows, those)``, indices of points and of images, until every point of every image was in one call.

    A call has at most ``chunk`` pairs, half as many after the device was out of memory: the same points of as many
    images as `shares_passes` allows. ``run`` must keep nothing of a call that fails.

    Raises
    ------
    torch.OutOfMemoryError
        When even one point of one image does not fit.
    """
    waiting = [(slice(0, points), slice(0, images))]
    while waiting:
        rows, those = waiting.pop()
        width = min(_length(those), chunk) if shares_passes(device) else 1
        height = max(1, chunk // width)
        if _length(rows) > height:
            waiting += [(part, those) for part in reversed(_split_evenly(rows, height))]
        elif _length(those) > width:
            waiting += [(rows, part) for part in reversed(_split_evenly(those, width))]
        else:
            try:
                run(rows, those)
            except torch.OutOfMemoryError:
                chunk = _length(rows) * _length(those) // 2
                if not chunk:
                    raise
                waiting.append((rows, those))


def _length(part: slice) -> int:
    return int(part.stop - part.start)


def _split_evenly(whole: slice, most: int) -> list[slice]:
    """Split into parts of at most ``most``, the first ones longer by one where needed: even, as in `in_chunks`."""
    count = -(-_length(whole) // most)
    short, longer = divmod(_length(whole), count)
    starts = [whole.start + index * short + min(index, longer) for index in range(count + 1)]
    return [slice(start, stop) for start, stop in pairwise(starts)]


def in_chunks(forward: Callable[[Tensor], Tensor], inputs: Tensor, chunk: int) -> Tensor:
    """Run ``forward`` over ``inputs`` (N, ...) in even chunks; halve the chunk when the device is out of memory.

    Raises
    ------
    torch.OutOfMemoryError
        When even one input does not fit.
    """
    return torch.cat(list(_chunks(forward, inputs, chunk)))


def _chunks(forward: Callable[[Tensor], Tensor], inputs: Tensor, chunk: int) -> Iterator[Tensor]:
    start = 0
    while start < len(inputs):
        # Even chunks: 8 inputs as 4 and 4, not as 6 and 2. A short last chunk costs more for each input.
        left = len(inputs) - start
        size = -(-left // -(-left // chunk))
        try:
            output = forward(inputs[start : start + size])
        except torch.OutOfMemoryError:
            if size == 1:
                raise
            chunk = size // 2
            continue
        yield output
        start += size


def stream(seed: int, block: int) -> torch.Generator:
    """Return the ``block``-th independent random stream of ``seed``, always on the CPU.

    Random numbers are drawn in fixed blocks, each from its own stream, so a result does not depend on the
    chunk size, on the device, or on where a resumed run began.
    """
    # SplitMix64's odd constant spreads neighbouring blocks over the seed space.
    mixed = (seed + (block + 1) * 0x9E3779B97F4A7C15) % 2**63
    return torch.Generator().manual_seed(mixed)


def draw_streams(
    draw: Callable[[torch.Generator], Tensor], seed: int, blocks: range, device: torch.device
) -> list[Tensor]:
    """Draw ``draw(stream(seed, block))`` of each block; for an accelerator on the cores that wait for it.

    Every block has its own stream, so the draws are the same. For a network on a CPU the cores are at work.
    """
    streams = (stream(seed, block) for block in blocks)
    if device.type == "cpu":
        return [draw(one) for one in streams]
    with ThreadPoolExecutor(min(DRAWING, os.cpu_count() or 1)) as threads:
        return list(threads.map(draw, streams))


def draw_seed(generator: torch.Generator) -> int:
    """Draw a 62-bit seed from ``generator``, for `stream`."""
    return int(torch.randint(2**62, (1,), generator=generator).item())
