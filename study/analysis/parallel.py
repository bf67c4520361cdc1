"""The same work on many seeds, on every core."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import TypeVar

from core.types import Progress, silent

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_AT_ONCE = 4
"""Pieces of work below which starting another process costs more than it saves."""


def each(
    work: Callable[[Argument], Result],
    items: Sequence[Argument],
    *,
    workers: int | None = None,
    what: str = "Working",
    progress: Progress = silent,
) -> list[Result]:
    """The results in the order of the items; raise from `progress` to stop: what has not begun is not begun.

    Parameters
    ----------
    work
        A function that another process can import (not a closure), of picklable items.
    workers
        Processes; every core if None. One works in this process.
    """
    count = count_workers(len(items), workers)
    if count < 2:
        return list(_one_by_one(work, items, what, progress))
    # spawn: a server's process has threads, and a fork of threads is a lottery
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            _report_progress(futures, what, progress)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def count_workers(items: int, workers: int | None = None) -> int:
    """Processes that `each` takes for so many items."""
    return min(workers or os.cpu_count() or 1, max(1, items // _AT_ONCE))


def measure_start(work: Callable[[], object]) -> float:
    """Seconds until a process of `each` has started, imported the module of `work` and run it."""
    began = time.perf_counter()
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start()
    process.join()
    return time.perf_counter() - began


def _one_by_one(
    work: Callable[[Argument], Result], items: Sequence[Argument], what: str, progress: Progress
) -> list[Result]:
    results = []
    for done, item in enumerate(items):
        progress(done, len(items), what)
        results.append(work(item))
    progress(len(items), len(items), what)
    return results


def _report_progress(futures: Sequence[Future[Result]], what: str, progress: Progress) -> None:
    for done, future in enumerate(as_completed(futures), start=1):
        future.result()
        progress(done, len(futures), what)
