"""Parallel work on many items, by an engine: processes of this machine, or tasks of a Ray cluster.

The engine does not change the results: each item is computed alone, and results keep the order of the items.
"""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, Literal, TypeVar, get_args

from core.errors import ForetellError
from core.types import Progress, silent
from study.workspace.workspace import ROOT

Argument = TypeVar("Argument")
Result = TypeVar("Result")

Engine = Literal["processes", "ray"]
MOST = 8
"""Largest default number of processes with a network: each loads it and about 0.5 GB of libraries."""
OPEN_TO_OTHERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray's variable for a cluster that other machines can join; by default on macOS and Windows, none can."""
_AT_ONCE = 4
"""Number of tasks below which starting another process costs more than it saves."""


def check_engine(engine: str) -> None:
    """Check that the engine is known and installed.

    Raises
    ------
    ForetellError
        Unknown or not installed.
    """
    if engine not in get_args(Engine):
        raise ForetellError(f"Unknown engine {engine!r}. Use one of {', '.join(get_args(Engine))}.")
    if engine == "ray" and importlib.util.find_spec("ray") is None:
        raise ForetellError("The engine 'ray' needs Ray, which is not installed: pip install ray.")


def each(
    work: Callable[[Argument], Result],
    items: Sequence[Argument],
    *,
    workers: int | None = None,
    engine: str = "processes",
    gpus: int = 0,
    what: str = "Working",
    progress: Progress = silent,
) -> list[Result]:
    """Return the results in the order of the items; raise from `progress` to stop before the next item.

    Parameters
    ----------
    work
        A function that another process can import (not a closure), of picklable items.
    workers
        Processes, or simultaneous Ray tasks; one per core if None. A single worker is this process itself.
    gpus
        GPUs of this machine, if the work uses them; each worker sees one of its own.
    """
    count = count_workers(len(items), workers)
    check_engine(engine)
    if engine == "ray":
        return _each_by_ray(work, items, count, gpus, what, progress)
    if count < 2:
        return list(_one_by_one(work, items, what, progress))
    # spawn: a server has threads, and forking a threaded process is unsafe
    context = multiprocessing.get_context("spawn")
    places = context.SimpleQueue()
    names = (os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(gpus)))).split(",")
    for k in range(count):
        places.put(names[k % len(names)])
    with ProcessPoolExecutor(count, context, initializer=_prepare, initargs=(places, gpus)) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            _report_progress(futures, what, progress)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def count_workers(items: int, workers: int | None = None) -> int:
    """Count the processes that `each` uses for so many items."""
    return min(workers or os.cpu_count() or 1, max(1, items // _AT_ONCE))


def workers_here() -> int:
    """Count the processes for work with a network: one per core, up to `MOST`; one if a GPU does the work.

    Cores are those torch would use: fewer if ``OMP_NUM_THREADS`` or the processor affinity says so.
    """
    import torch

    return 1 if torch.cuda.is_available() else min(MOST, torch.get_num_threads())


def measure_start(work: Callable[[], object]) -> float:
    """Measure the seconds in which a process of `each` starts, imports the module of `work` and runs it."""
    began = time.perf_counter()
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start()
    process.join()
    return time.perf_counter() - began


@contextmanager
def start_ray(count: int) -> Iterator[Any]:
    """Connect to the cluster of ``RAY_ADDRESS``, or start one with ``count`` cores here, during the block.

    One that is started here listens to this machine alone: whoever reaches a cluster runs code on it.
    """
    address = os.environ.get("RAY_ADDRESS")
    if address is None:
        os.environ.setdefault(OPEN_TO_OTHERS, "0")  # read when Ray is imported
    ray: Any = importlib.import_module("ray")
    if ray.is_initialized():
        yield ray
        return
    environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    size = {} if address else {"num_cpus": count}
    ray.init(address=address, include_dashboard=False, runtime_env={"env_vars": environment}, **size)
    try:
        yield ray
    finally:
        ray.shutdown()


def _each_by_ray(
    work: Callable[[Argument], Result], items: Sequence[Argument], count: int, gpus: int, what: str, progress: Progress
) -> list[Result]:
    results: dict[int, Result] = {}
    with start_ray(count) as ray:
        # Ray itself gives each task its own GPU.
        task = ray.remote(num_cpus=1, num_gpus=1 if gpus else 0, max_retries=0)(_call)
        shared = ray.put(work)
        running: dict[Any, int] = {}
        try:
            for number, item in enumerate(items):
                if len(running) == count:
                    _collect(ray, running, results)
                    progress(len(results), len(items), what)
                running[task.remote(shared, item)] = number
            while running:
                _collect(ray, running, results)
                progress(len(results), len(items), what)
        except BaseException:
            for one in running:
                ray.cancel(one)
            raise
    return [results[number] for number in range(len(items))]


def _collect(ray: Any, running: dict[Any, int], results: dict[int, Any]) -> None:
    """Collect the result of the next finished task; raise its own error, not Ray's."""
    (done,), _ = ray.wait(list(running), num_returns=1)
    try:
        results[running.pop(done)] = ray.get(done)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None


def _call(work: Callable[[Argument], Result], item: Argument) -> Result:
    return work(item)


def _prepare(places: Any, gpus: int) -> None:
    """Prepare a worker: it ends with its parent, even one that is killed, and sees one GPU."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = places.get()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


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
