"""A workspace of the test's own for the pages: the real service over a real database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from dashboard import door
from study.workspace import VARIABLE


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty workspace that the pages and the test share."""
    home = tmp_path / "workspace"
    home.mkdir()
    monkeypatch.setenv(VARIABLE, str(home))
    torch.set_num_threads(1)
    door.close()
    yield home
    door.close()
