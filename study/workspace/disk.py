"""Room for answers: a study takes nobody new when the disk that keeps them is nearly full."""

from __future__ import annotations

import shutil
from pathlib import Path

LEAST_FREE = 1 << 30


def free_bytes(home: Path) -> int:
    """What is free on the disk that holds a workspace."""
    return shutil.disk_usage(home).free


def is_low(home: Path) -> bool:
    """Whether less than a GiB is free."""
    return free_bytes(home) < LEAST_FREE
