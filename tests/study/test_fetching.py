"""Weights that are fetched in a process of their own: what is counted, what Stop ends, and what a failure says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from core.errors import ForetellError
from study.network.fetching import fetch_network

SIZE = 3_000_000
SLOW = f"""
import os, time, torch
from pathlib import Path

def build():
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "process").write_text(str(os.getpid()))
    (folder / "weights.pth.1.partial").write_bytes(bytes({SIZE}))
    while True:
        time.sleep(0.05)
"""


class Stopped(Exception):
    pass


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hf"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "hub" / "checkpoints"


def test_bytes_are_counted_and_stop_ends_the_download(hub: Path, tmp_path: Path) -> None:
    """Catches a process that goes on downloading, half a file that stays, and megabytes in another unit."""
    (tmp_path / "slow.py").write_text(SLOW)
    said: list[tuple[int, int, str]] = []

    def progress(done: int, total: int, what: str) -> None:
        said.append((done, total, what))
        if done >= SIZE // 1_000_000:
            raise Stopped

    with pytest.raises(Stopped):
        fetch_network("slow.py:build", tmp_path, progress, size=44_700_000)
    assert said[-1] == (3, 44, "megabytes downloaded")
    assert list(hub.glob("*.partial")) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int((hub / "process").read_text()), 0)


def test_a_network_that_cannot_be_loaded_says_why(hub: Path, tmp_path: Path) -> None:
    """Catches a failure of the other process that is lost, and a download of unknown size that reports nothing."""
    (tmp_path / "broken.py").write_text("def build():\n    return 1 / 0\n")
    said: list[str] = []
    with pytest.raises(ForetellError, match="ZeroDivisionError"):
        fetch_network("broken.py:build", tmp_path, lambda *report: said.append(report[2]))
    assert said[0] == "0.0 MB downloaded"
