"""Files that a browser uploads, kept on the disk of the workspace while a page uses them, and not in memory.

Streamlit keeps what is uploaded in memory until the session ends. `dashboard.server.receiving` writes it to a file
instead, and gives Streamlit an empty text in its place.
"""

from __future__ import annotations

import functools
import io
import time
import uuid
import weakref
from pathlib import Path
from typing import IO, Any

from streamlit.runtime.scriptrunner import get_script_run_ctx

from study.workspace.imagefolders import ABANDONED_S, Entry
from study.workspace.workspace import home

FOLDER = "uploads"
"""Folder of the workspace; a file in it goes when the last page that uses it does."""


class StoredFile:
    """An uploaded file on disk, which is removed when nothing refers to it any more.

    Attributes
    ----------
    path, size
        Where it lies, and its bytes.
    account
        Who uploaded it: the name of the account.
    """

    def __init__(self, account: str) -> None:
        folder = home() / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        self.path, self.size, self.account = folder / uuid.uuid4().hex, 0, account
        weakref.finalize(self, _remove, self.path)

    def open(self) -> IO[bytes]:
        """Open the file; whoever reads it keeps it."""
        file = self.path.open("rb")
        file.stored = self  # type: ignore[attr-defined]
        return file


class StoredBytes(bytes):
    """What Streamlit keeps of an uploaded file: no bytes, and where they are."""

    file: StoredFile


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def remove_abandoned() -> None:
    """Remove what a server that was killed has left."""
    for path in (home() / FOLDER).glob("*"):
        if time.time() - path.stat().st_mtime > ABANDONED_S:
            path.unlink(missing_ok=True)


def find_stored(uploaded: Any) -> StoredFile | None:
    """Find the file on disk of an uploaded file of a page; None for one that is in memory, as in AppTest."""
    context = get_script_run_ctx()
    records = context.uploaded_file_mgr.get_files(context.session_id, [uploaded.file_id]) if context else []
    return next((record.data.file for record in records if isinstance(record.data, StoredBytes)), None)


def make_upload_entry(uploaded: Any) -> Entry:
    """Return an uploaded file as one to add to the workspace."""
    stored = find_stored(uploaded)
    if stored is None:
        content = uploaded.getvalue()
        return Entry(uploaded.name, len(content), functools.partial(io.BytesIO, content))
    return Entry(uploaded.name, stored.size, stored.open)


def read_upload(uploaded: Any) -> bytes:
    """Read an uploaded file of a page that takes small ones only."""
    with make_upload_entry(uploaded).open() as file:
        return file.read()
