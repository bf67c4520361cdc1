"""Files that are there whole or not at all, whoever else writes or reads them at the same time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of ``path`` in one step when the block ends; its folder is made.

    The temporary name is the writer's own, so two processes do not disturb each other; after an exception nothing
    has changed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".partial", delete=False) as file:
        whole = Path(file.name)
        try:
            yield file
        except BaseException:
            file.close()
            whole.unlink()
            raise
    whole.chmod(0o644)  # temporary files are the owner's alone
    whole.replace(path)


def write_whole(path: Path, content: bytes) -> Path:
    """Write ``content`` by `replacing`; returns the path."""
    with replacing(path) as file:
        file.write(content)
    return path
