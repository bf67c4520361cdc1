"""The demo study: built, opened and filled with simulated participants once for each workspace and version."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from core.types import Progress, silent
from study.plan.mixture import MIXTURE, parse_mixture
from study.service import Service
from study.workspace.apart import run_apart
from study.workspace.provenance import code_digest
from study.workspace.workspace import ROOT, database

NAME = "demo"
STUDY_FILE = ROOT / "data" / "studies" / f"{NAME}.toml"
SIMULATED = 80
DONE, LOCK = "demo.done", ".demo.lock"
WAIT_S = 0.3
"""Seconds between two looks at the lock of another process."""
STAGES = {
    "predicting scenes/pool": (6, 10),
    "predicting scenes/standard": (10, 17),
    "predicting scenes/adversarial": (17, 20),
    "choosing": (20, 23),
    "explaining": (23, 88),
    "simulated": (88, 100),
}
"""Percent of the whole work before and after each stage, by how its reports begin: as measured on two cores."""


def is_ready(service: Service, home: Path) -> bool:
    """Tell whether this version's demo is built, opened and filled in this workspace.

    Verifying the bundle itself would load torch, the network and the images: seconds at every start.
    """
    opened = any(study.name == NAME for study in service.researcher.studies())
    whole = opened and any((home / "bundles").glob(f"{NAME}-*/manifest.json"))
    done = home / DONE
    return whole and done.is_file() and done.read_text(encoding="utf-8") == _mark(home)


def prepare_apart(home: Path, progress: Progress = silent) -> None:
    """Prepare the demo in processes of their own, at a lower priority than that of this one."""
    run_apart(f"{__name__}:prepare", str(home), progress=progress)


def prepare(home: str, *, progress: Progress = silent) -> str:
    """Build, open and fill the demo on all cores, unless that is done; progress is in percent of the whole work.

    Stopped at any moment, it continues at the next call. One process prepares a workspace's demo at a time: a second
    one waits for it, or takes over when it is killed. Returns "".
    """
    folder = Path(home)
    with _turn(folder, progress), Service(folder) as service:
        if not is_ready(service, folder):
            _fill(service, folder, _in_percent(progress))
            (folder / DONE).write_text(_mark(folder), encoding="utf-8")
    return ""


def _fill(service: Service, home: Path, progress: Progress) -> None:
    from study.building.workers import build_with, helpers_here  # imports torch
    from study.simulate import simulate

    bundle = build_with(helpers_here(), STUDY_FILE, home, progress)
    name = service.researcher.open_study(bundle.folder, int(bundle.manifest.config["allocation"]["per_condition"]))
    simulate(service, name, SIMULATED, parse_mixture(MIXTURE), 0, progress)


@contextmanager
def _turn(home: Path, progress: Progress) -> Iterator[None]:
    """Hold the workspace's lock of the demo; the system releases it when its process dies."""
    home.mkdir(parents=True, exist_ok=True)
    lock = FileLock(home / LOCK, blocking=False)
    while True:
        try:
            lock.acquire()
            break
        except Timeout:
            progress(0, 0, "waiting for another Foretell, which prepares the demo study")
            time.sleep(WAIT_S)
    try:
        yield
    finally:
        lock.release()


def _in_percent(progress: Progress) -> Progress:
    """Turn the reports of the stages into one of the whole work, which never goes back."""
    reached = 0

    def report(done: int, total: int, what: str) -> None:
        nonlocal reached
        start, end = next((span for begin, span in STAGES.items() if what.startswith(begin)), (0, 0))
        reached = max(reached, start + round((end - start) * done / max(total, 1)))
        progress(reached, 100, f"{what}, {done:,} of {total:,}")

    return report


def _mark(home: Path) -> str:
    """Hash what a finished demo depends on: the code, the database and the study file (SHA-256)."""
    parts = code_digest().encode() + str(database(home)).encode() + STUDY_FILE.read_bytes()
    return hashlib.sha256(parts).hexdigest()
