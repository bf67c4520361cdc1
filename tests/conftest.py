"""What every test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real() -> Path:
    """The folder of real networks, photographs and responses, or a visible skip."""
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "real"
    folder = Path(os.environ.get("FORETELL_REAL", beside))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set FORETELL_REAL")
    return folder
