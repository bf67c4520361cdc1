"""A long command killed in the midst and given again, beside one that was left alone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests import commands

PATIENCE_S = 600


def killed_and_whole(folder: Path, words: Sequence[str], names: Sequence[str]) -> list[str]:
    """``foretell.py WORDS --out ...`` in ``folder``, killed when it has kept something, then finished; and once whole.

    Both leave ``names`` with the same bytes and nothing else. Gives what the two finished ones said.
    """
    killed = _begun(folder, words, "killed", "first")
    until = time.monotonic() + PATIENCE_S
    while not list((folder / "killed" / "parts").glob("*.npz")) and killed.is_alive() and time.monotonic() < until:
        time.sleep(0.02)
    killed.kill()
    killed.join()
    assert list((folder / "killed" / "parts").glob("*.npz")), (folder / "first.err").read_text()
    ran = {"again": _begun(folder, words, "killed", "again"), "whole": _begun(folder, words, "whole", "whole")}
    for name, process in ran.items():
        process.join(PATIENCE_S)
        assert process.exitcode == 0, (folder / f"{name}.err").read_text()
    for name in names:
        assert (folder / "killed" / name).read_bytes() == (folder / "whole" / name).read_bytes()
    assert sorted(path.name for path in (folder / "killed").iterdir()) == sorted(names)
    return [(folder / f"{name}.out").read_text() for name in ran]


def _begun(folder: Path, words: Sequence[str], out: str, log: str) -> ForkServerProcess:
    said, complained = folder / f"{log}.out", folder / f"{log}.err"
    return commands.start(*words, "--out", out, out=said, err=complained, environment={}, cwd=folder)
