"""Where a user's own things live: bundles, databases, downloads. Never inside the code."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "FORETELL_HOME"
ROOT = Path(__file__).resolve().parents[1]


def home() -> Path:
    """The workspace folder: ``FORETELL_HOME``, or ``workspace`` under the repository root. Made if missing."""
    named = os.environ.get(VARIABLE)
    folder = Path(named).expanduser() if named else ROOT / "workspace"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()
