"""A long command killed in the midst and given again, beside one that was left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import ROOT


def killed_and_whole(folder: Path, words: Sequence[str], names: Sequence[str]) -> list[str]:
    """``foretell.py WORDS --out ...`` in ``folder``, killed when it has kept something, then finished; and once whole.

    Both leave ``names`` with the same bytes and nothing else. Gives what the two finished ones said.
    """
    killed = _begun(folder, words, "killed")
    until = time.monotonic() + 120
    while not list((folder / "killed" / "parts").glob("*.npz")) and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert list((folder / "killed" / "parts").glob("*.npz"))
    ran = [_begun(folder, words, "killed"), _begun(folder, words, "whole")]
    said = [process.communicate(timeout=600) for process in ran]
    assert [process.returncode for process in ran] == [0, 0], said
    for name in names:
        assert (folder / "killed" / name).read_bytes() == (folder / "whole" / name).read_bytes()
    assert sorted(path.name for path in (folder / "killed").iterdir()) == sorted(names)
    return [out for out, _ in said]


def _begun(folder: Path, words: Sequence[str], out: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "foretell.py"), *words, "--out", out]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
