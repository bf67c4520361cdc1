"""Which of two ways to compute is faster on this processor: both are timed once, and the choice is kept.

oneDNN and PyTorch's own way give the same numbers up to rounding; which is faster depends on the processor and the
network. The first use times both; later ones, also of other processes, read the choice from a file of the processor in
the user's cache, so that what is computed again on the same machine is computed alike. Where no file can be kept,
PyTorch's own way is taken.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import RLock

import torch

CLEARLY = 0.95
"""Largest share of the time of PyTorch's own way that oneDNN may take to be chosen."""
ROUNDS = 3
"""Runs of each way, in turns; the shortest counts."""
ENOUGH_S = 1.0
"""Seconds after which no further round begins: what takes long is timed well by few runs."""
LINE = re.compile(r"(\S.*): (own|onednn)")
"""A line of the file: what was timed, and the way that was chosen. The first line of it holds, whoever wrote it."""

_LOCK = RLock()
_known: dict[tuple[int, str], bool] = {}


def is_onednn_faster(what: str, own: Callable[[], object], onednn: Callable[[], object]) -> bool:
    """Tell whether ``onednn`` computes ``what`` clearly faster than ``own`` on this processor.

    Both are run the first time with this number of threads, and must change nothing.
    """
    key = (torch.get_num_threads(), what)
    if key not in _known:
        with _LOCK:
            _learn(key, own, onednn)
    return _known[key]


def locate_choices() -> Path:
    """Return the file of the choices of this processor, number of threads and release of PyTorch."""
    facts = name_processor(), name_instructions(), f"{torch.get_num_threads()} threads", f"torch {torch.__version__}"
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "foretell"
    return cache / f"{re.sub(r'[^A-Za-z0-9.]+', '-', ' '.join(facts))}.txt"


def read_choices(file: Path) -> Mapping[str, bool]:
    """Read what was timed, each with whether oneDNN was chosen; lines that are damaged are left out."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    matches = [match for line in lines if (match := LINE.fullmatch(line))]
    return {match[1]: match[2] == "onednn" for match in reversed(matches)}


@functools.cache
def name_processor() -> str:
    """Name the processor as the system does."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def name_instructions() -> str:
    """Name the widest vector instructions that PyTorch uses on this processor."""
    return torch.backends.cpu.get_cpu_capability()


def _learn(key: tuple[int, str], own: Callable[[], object], onednn: Callable[[], object]) -> None:
    """Read a choice, or time both ways and keep the choice, unless another process has written one meanwhile."""
    if key in _known:
        return
    what, file = key[1], locate_choices()
    choices = read_choices(file)
    if what not in choices:
        chosen = "onednn" if _time(own, onednn) else "own"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as out:
                out.write(f"{what}: {chosen}\n")
        except OSError:  # a cache that is read-only or full: each process would choose for itself
            choices = {what: False}
        else:
            choices = read_choices(file)
    _known[key] = choices.get(what, False)


def _time(own: Callable[[], object], onednn: Callable[[], object]) -> bool:
    """Time both in turns; on one thread in processor seconds, which wait for no other program."""
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    shortest = [float("inf")] * 2
    began = clock()
    for _ in range(ROUNDS):
        for index, run in enumerate((own, onednn)):
            start = clock()
            run()
            shortest[index] = min(shortest[index], clock() - start)
        if clock() - began > ENOUGH_S:
            break
    return shortest[1] < CLEARLY * shortest[0]
