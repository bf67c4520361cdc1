"""Disk space for responses: a study takes no new participants when the disk is nearly full."""

from __future__ import annotations

import shutil
from pathlib import Path

LEAST_FREE = 1 << 30


def free_bytes(home: Path) -> int:
    """Measure the free space on the disk of a workspace."""
    return shutil.disk_usage(home).free


def is_low(home: Path) -> bool:
    """Tell whether less than a GiB is free."""
    return free_bytes(home) < LEAST_FREE
