"""Further workers for one build: processes of this machine, or tasks of a Ray cluster that shares the workspace.

A helper does what the builder does (`study.building.build`) and stops when its builder has: what is to be done is
shared out by the units on disk (`study.workspace.files.gather_results`), so that nothing but a study file, a workspace
and a device is handed over.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch

from core.errors import ForetellError
from core.types import Progress, silent
from study.building.build import build
from study.bundle import Bundle
from study.workspace.apart import run_apart
from study.workspace.parallel import check_engine, start_ray, workers_here

Build = Callable[[Path, Path, Progress, str | None], object]
"""``build(study_file, workspace, progress, device)``: a function of a module, which another process can import."""
GOODBYE_S = 10.0
"""Seconds that an interrupted Ray task may take to clean up."""


@dataclass(frozen=True)
class Helpers:
    """``count`` helpers of an engine, next to the builder itself."""

    count: int
    engine: str = "processes"

    def __post_init__(self) -> None:
        check_engine(self.engine)
        if self.count < 1:
            raise ForetellError(f"{self.count} workers: give at least 2, the builder and one helper.")

    @contextmanager
    def start(self, build: Build, path: Path, home: Path, device: str | None) -> Iterator[None]:
        """Return the helpers at work while the block runs; each takes the next GPU where no device is named."""
        places = [device or _place(k + 1) for k in range(self.count)]
        start = _tasks if self.engine == "ray" else _processes
        with start(build, path.resolve(), home, places):
            yield


def build_with(
    helpers: Helpers | None, path: Path, home: Path, progress: Progress = silent, *, device: str | None = None
) -> Bundle:
    """Build a study with ``helpers`` at work next to this process: the same bundle as that of `build` alone."""
    with helpers.start(_build_alone, path, home, device) if helpers else nullcontext():
        return build(path, home, progress, device=device)


def _build_alone(path: Path, home: Path, progress: Progress, device: str | None) -> None:
    build(path, home, progress, device=device)


def build_apart(path: Path, home: Path, progress: Progress = silent) -> Bundle:
    """Build a study on all cores in processes of their own, at a lower priority than that of this one."""
    return Bundle(Path(run_apart(f"{__name__}:build_here", str(path), str(home), progress=progress)))


def build_here(path: str, home: str, *, progress: Progress = silent) -> str:
    """Build a study on all cores; return the folder of its bundle, as `run_apart` hands it over."""
    return str(build_with(helpers_here(), Path(path), Path(home), progress).folder)


def helpers_here() -> Helpers | None:
    """Return the helpers of `workers_here`, if there are any."""
    count = workers_here() - 1
    return Helpers(count) if count else None


def _place(k: int) -> str | None:
    return f"cuda:{k % torch.cuda.device_count()}" if torch.cuda.is_available() else None


def help_build(build: Build, path: Path, home: Path, device: str | None, builder: int | None) -> None:
    """Help the process ``builder`` (None: on another machine) with ``build``."""
    if builder is not None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # leave no half-written file

    def watch(*_: object) -> None:
        if builder is not None and os.getppid() != builder:
            sys.exit(0)  # the builder was killed: its helpers do not outlive it

    try:
        build(path, home, watch, device)
    finally:
        if builder is not None:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it goes anyway, and Python's own goodbye must not stumble


@contextmanager
def _processes(build: Build, path: Path, home: Path, places: list[str | None]) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    started = [
        context.Process(target=help_build, args=(build, path, home, place, os.getpid()), daemon=True)
        for place in places
    ]
    for process in started:
        process.start()
    try:
        yield
    finally:
        for process in started:
            process.terminate()
            process.join()


@contextmanager
def _tasks(build: Build, path: Path, home: Path, places: list[str | None]) -> Iterator[None]:
    with start_ray(len(places)) as ray:
        # Ray itself shows each task its own GPU.
        task = ray.remote(num_cpus=1, num_gpus=1 if torch.cuda.is_available() else 0, max_retries=0)(help_build)
        tasks = [task.remote(build, path, home, None, None) for _ in places]
        try:
            yield
        finally:
            for one in tasks:
                ray.cancel(one)  # an interrupt: it leaves no half-written file
            ray.wait(tasks, num_returns=len(tasks), timeout=GOODBYE_S)
            for one in tasks:
                ray.cancel(one, force=True)
