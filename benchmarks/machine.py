"""The machine of a benchmark, and the JSON output that all benchmarks share."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from core.network.timing import name_instructions, name_processor

PACKAGES = ("torch", "torchvision", "numpy", "scipy", "pandas", "glmm", "statsmodels")


def describe() -> dict[str, Any]:
    """Describe processor, cores, memory settings, versions, and the machine's load."""
    return {
        "processor": name_processor(),
        "instructions": name_instructions(),
        "cores": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {package: version(package) for package in PACKAGES},
        "malloc": {name: value for name, value in sorted(os.environ.items()) if name.startswith("MALLOC_")},
        "load_average_1min": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def in_turns(work: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Measure median seconds of each piece of work; all take turns, so that load from outside affects each alike.

    With one thread and no accelerator they are processor seconds, which wait for no other program.
    """
    alone = torch.get_num_threads() == 1 and not on_accelerator()
    clock = time.process_time if alone else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for name in work:
        work[name]()  # warm up
    if on_accelerator():
        torch.cuda.synchronize()
    for _ in range(rounds):
        for name, run in work.items():
            start = clock()
            run()
            if on_accelerator():
                torch.cuda.synchronize()
            seconds[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def on_accelerator() -> bool:
    """Whether there is a GPU, which works on after a call has returned."""
    return torch.cuda.is_available()


def report(benchmark: str, measure: Callable[[], dict[str, Any]]) -> None:
    """Run a benchmark, print its JSON, and write it where ``--json FILE`` says."""
    hand_over(benchmark, arguments(benchmark).parse_args(), measure)


def arguments(benchmark: str) -> argparse.ArgumentParser:
    """Make the parser of the options that all benchmarks share."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{benchmark}")
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    parser.add_argument("--threads", type=int, help="threads of torch; 1 where other programs use the cores")
    return parser


def note_join(stored: dict[str, Any], machine: dict[str, Any], methods: dict[str, list[str]]) -> dict[str, Any]:
    """Return a stored record's machine with a note of the methods, by part or network, that were measured later."""
    note = {name: machine[name] for name in ("processor", "measured_at", "load_average_1min", "versions")}
    joined = [*stored["machine"].get("joined", []), note | {"methods": methods}]
    return dict(stored["machine"]) | {"joined": joined}


def join_measured(
    given: argparse.Namespace,
    measure: Callable[[], dict[str, Any]],
    join: Callable[[dict[str, Any], dict[str, Any], dict[str, Any]], dict[str, Any]],
) -> None:
    """Write the file ``given.join`` again, as ``join(stored, measured, machine)`` makes it."""
    torch.set_num_threads(given.threads or torch.get_num_threads())
    stored, machine = json.loads(given.join.read_text(encoding="utf-8")), describe()
    given.join.write_text(json.dumps(join(stored, measure(), machine), indent=1) + "\n", encoding="utf-8")


def hand_over(benchmark: str, given: argparse.Namespace, measure: Callable[[], dict[str, Any]]) -> None:
    """Run `report` for arguments already read."""
    if given.threads:
        torch.set_num_threads(given.threads)
    machine = describe()  # first, as the benchmark itself adds load
    text = json.dumps({"benchmark": benchmark, "machine": machine, "result": measure()}, indent=1) + "\n"
    print(text, end="")
    if given.json is not None:
        given.json.write_text(text, encoding="utf-8")
