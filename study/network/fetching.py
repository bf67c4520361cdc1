"""Fetch the weights of a network in a process of its own: it can be stopped, and its bytes are counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from core.errors import ForetellError
from core.sources.local import find_hub_cache
from core.sources.offers import CLIP_CACHE
from core.types import Progress
from study.network.sources import open_classifier
from study.workspace.folders import find_limits
from study.workspace.workspace import ROOT

POLL_S = 0.3
PARTIAL = "*.partial"
"""Files that torch leaves where a download was killed."""
MEGABYTE = 10**6


def fetch_network(
    spec: str, base: Path, progress: Progress, size: int | None = None, *, is_limited: bool = False
) -> None:
    """Load a network once in another process, so that its weights are on this machine.

    Parameters
    ----------
    spec, base
        As `open_classifier` takes them.
    progress
        Is told the megabytes fetched so far, and of how many. An exception that it raises ends the process.
    size
        Bytes of the weights; None where that is unknown.
    is_limited
        Whether ``spec`` may name only files that accounts may name in the workspace ``base``.

    Raises
    ------
    ForetellError
        The network cannot be loaded, for the reason that `open_classifier` gives.
    """
    folders = list_download_folders()
    before, partial = _count_bytes(folders), set(_list_partial())
    with _start(spec, base, is_limited) as process:
        said: list[str] = []
        reading = threading.Thread(target=lambda: said.append(process.stdout.read() if process.stdout else ""))
        reading.start()
        try:
            while reading.is_alive():
                reading.join(POLL_S)
                _report(progress, max(0, _count_bytes(folders) - before), size)
        except BaseException:
            process.kill()
            for file in set(_list_partial()) - partial:
                file.unlink(missing_ok=True)
            raise
    if process.returncode != 0:
        raise ForetellError(_read_reason(said, spec))


def list_download_folders() -> list[Path]:
    """List the folders into which torchvision, the client of huggingface.co and open_clip download."""
    return [Path(torch.hub.get_dir()) / "checkpoints", find_hub_cache(), CLIP_CACHE.expanduser()]


def serve(spec: str, base: str, hub: str, is_limited: bool) -> None:
    """Load a network in this process; a failure is written to standard output as JSON and ends it with code 2."""
    torch.hub.set_dir(hub)
    output, sys.stdout = sys.stdout, sys.stderr
    try:
        open_classifier(spec, Path(base), "cpu", limits=find_limits(Path(base)) if is_limited else None)
    except ForetellError as error:
        json.dump(str(error), output)
        output.flush()
        os._exit(2)


def _start(spec: str, base: Path, is_limited: bool) -> subprocess.Popen[str]:
    folders = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    arguments = ", ".join(map(repr, (spec, str(base), torch.hub.get_dir(), is_limited)))
    return subprocess.Popen(
        [sys.executable, "-P", "-c", f"from {__name__} import serve; serve({arguments})"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _report(progress: Progress, fetched: int, size: int | None) -> None:
    if size is None or fetched > size:
        progress(0, 0, f"{fetched / MEGABYTE:,.1f} MB downloaded")
    else:
        progress(fetched // MEGABYTE, max(1, size // MEGABYTE), "megabytes downloaded")


def _count_bytes(folders: Sequence[Path]) -> int:
    return sum(_list_sizes(folders))


def _list_sizes(folders: Sequence[Path]) -> Iterator[int]:
    for folder in folders:
        for path in folder.rglob("*"):
            try:
                if path.is_file() and not path.is_symlink():
                    yield path.stat().st_size
            except OSError:
                continue  # renamed when its download ended


def _list_partial() -> list[Path]:
    return list(list_download_folders()[0].glob(PARTIAL))


def _read_reason(said: Sequence[str], spec: str) -> str:
    try:
        return str(json.loads("".join(said)))
    except ValueError:
        return f"{spec} ended the process that loaded it. Check that this machine has enough memory and disk for it."
