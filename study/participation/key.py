"""The workspace's key, which makes pseudonyms, private codes and personal links: made once, checked at every start."""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import uuid
from pathlib import Path

from study.participation.ending import code_hash
from study.store import Store, keycheck

LENGTH = 32


def find_key_fault(path: Path, store: Store) -> str | None:
    """Say what is wrong with the key of a workspace, if anything; make the key of a new one.

    With another key, nobody's withdrawal code and personal link would be valid any more. A database of an earlier
    version has no check value yet: the hashes of its private codes tell whether the key is theirs.
    """
    value = store.read(keycheck.load)
    codes = store.read(keycheck.list_codes) if value is None else []
    if not path.exists():
        if value is not None or codes:
            return (
                f"{path} is missing: without it no withdrawal code and no personal link of this workspace is valid. "
                "Restore it from a backup."
            )
        make_key(path)
    key = path.read_bytes()
    made = hmac.new(key, b"check", "sha256").hexdigest()
    if value is None and (not codes or any(code_hash(key, session) == known for session, known in codes)):
        store.write(lambda db: keycheck.keep(db, made))
        return None
    if value == made:
        return None
    return (
        f"{path} is not the key of this workspace: no withdrawal code and no personal link would be valid. Restore it "
        "from a backup."
    )


def make_key(path: Path) -> None:
    """Make a key; one that another process has made meanwhile stays."""
    # Written whole before it has its name: another process that starts now must not read half of it.
    made = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(LENGTH))
    with contextlib.suppress(FileExistsError):
        os.link(made, path)
    made.unlink()
