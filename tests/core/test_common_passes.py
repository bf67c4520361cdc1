"""Passes that images share: every point of every image once, within memory, also when the device runs out of it."""

from __future__ import annotations

import time
from collections import Counter

import pytest
import torch

from core.network.device import draw_streams, in_common_passes, stream

GPU, CPU = torch.device("cuda"), torch.device("cpu")


def collect(points: int, images: int, chunk: int, device: torch.device, fits: int = 10**9) -> list[tuple[slice, slice]]:
    """Return the calls that succeeded, of a device on which ``fits`` pairs fit."""
    done: list[tuple[slice, slice]] = []

    def run(rows: slice, those: slice) -> None:
        if size(rows, those) > fits:
            raise torch.OutOfMemoryError("out of memory")
        done.append((rows, those))

    in_common_passes(run, points, images, chunk, device)
    return done


def size(rows: slice, those: slice) -> int:
    return (rows.stop - rows.start) * (those.stop - those.start)


@pytest.mark.parametrize("device", [GPU, CPU], ids=["gpu", "cpu"])
@pytest.mark.parametrize(("points", "images"), [(1, 1), (64, 8), (7, 3), (1, 30), (5, 30)])
@pytest.mark.parametrize(("chunk", "fits"), [(256, 10**9), (10, 10**9), (1, 10**9), (10, 3), (256, 1)])
def test_every_pair_is_in_one_call(device: torch.device, points: int, images: int, chunk: int, fits: int) -> None:
    """Catches a pair that is lost or counts twice, and a call beyond what fits."""
    done = collect(points, images, chunk, device, fits)
    pairs = [(p, i) for rows, those in done for p in range(points)[rows] for i in range(images)[those]]
    assert Counter(pairs) == Counter((p, i) for p in range(points) for i in range(images))
    assert max(size(*one) for one in done) <= min(chunk, fits)


def test_images_share_calls_on_an_accelerator_alone() -> None:
    """Catches other passes on a CPU, whose sizes change the last bits of what was frozen there. Expected: by hand."""
    shared = [(slice(0, 32), slice(0, 8)), (slice(32, 64), slice(0, 8))]
    assert collect(64, 8, 256, GPU) == shared
    assert collect(64, 2, 256, CPU) == [(slice(0, 64), slice(0, 1)), (slice(0, 64), slice(1, 2))]
    assert [size(*one) for one in collect(64, 1, 6, CPU)] == [6] * 9 + [5] * 2, "even, as in_chunks makes them"


def test_one_pair_that_does_not_fit_is_an_error() -> None:
    """Catches halving without an end."""
    with pytest.raises(torch.OutOfMemoryError):
        collect(4, 4, 16, GPU, fits=0)


def test_draws_for_an_accelerator_are_the_cpus_in_their_order() -> None:
    """Catches threads that share a stream or return in the order in which they end. Expected: each stream by itself."""
    late = {stream(5, 3).initial_seed()}

    def draw(generator: torch.Generator) -> torch.Tensor:
        if generator.initial_seed() in late:
            time.sleep(0.05)
        return torch.randn(1000, generator=generator)

    expected = [torch.randn(1000, generator=stream(5, block)) for block in range(3, 20)]
    for device in (GPU, CPU):
        assert torch.equal(torch.stack(draw_streams(draw, 5, range(3, 20), device)), torch.stack(expected))
