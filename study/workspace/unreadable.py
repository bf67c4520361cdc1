"""Files that are named like images and are none: they are not kept, whatever else they may be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from core.errors import ForetellError
from data.errors import DataError
from data.sets.images import read_image


def remove_unreadable(files: Sequence[tuple[str, Path]], folder: Path) -> tuple[str, ...]:
    """Remove the files that are no images, whatever their names say, and return their names."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        readable = list(pool.map(_is_readable, (path for _, path in files)))
    if not any(readable):
        raise ForetellError("None of the files can be read as an image. Nothing was added; open one to see why.")
    for (_, path), is_readable in zip(files, readable, strict=True):
        if not is_readable:
            path.unlink()
    for here, _, _ in os.walk(folder, topdown=False):
        if not any(Path(here).iterdir()):
            Path(here).rmdir()
    return tuple(name for (name, _), is_readable in zip(files, readable, strict=True) if not is_readable)


def _is_readable(path: Path) -> bool:
    try:
        read_image(path)
    except DataError:
        return False
    return True
