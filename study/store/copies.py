"""Backup of a whole database to a file, and its restoration, by SQLite's online backup or PostgreSQL's pg_dump."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

from sqlalchemy import URL, create_engine, inspect

from study.store.database.engine import Place, parse_place
from study.store.errors import StoreError


def save(place: Place, path: Path) -> None:
    """Write one consistent state of the database to `path` while it is in use; raise `StoreError` on failure."""
    made = parse_place(place)
    if made.get_backend_name() == "sqlite":
        _copy(_file(made), path)
    else:
        _run("pg_dump", made, "--format=custom", "--no-owner", f"--file={path}")


def load(path: Path, place: Place) -> None:
    """Restore the database from what `save` wrote; raise `StoreError` if there is a database already."""
    made = parse_place(place)
    if made.get_backend_name() == "sqlite":
        if _file(made).exists():
            raise StoreError(f"{_file(made)} already exists. Move it away first.")
        _copy(path, _file(made))
        return
    engine = create_engine(made.set(drivername="postgresql+psycopg"))
    try:
        if inspect(engine).has_table("schema_version"):
            raise StoreError(f"{made.render_as_string()} already contains a database. Name an empty one.")
    finally:
        engine.dispose()
    _run("pg_restore", made, "--exit-on-error", "--single-transaction", "--no-owner", str(path))


def _file(url: URL) -> Path:
    return Path(url.database or "")


def _copy(source: Path, target: Path) -> None:
    if not source.is_file():
        raise StoreError(f"{source} is missing. Nothing can be copied from it.")
    try:
        with (
            contextlib.closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as old,
            contextlib.closing(sqlite3.connect(target)) as new,
        ):
            old.backup(new)
    except sqlite3.Error as error:
        raise StoreError(f"{source} could not be copied to {target} ({error}). Check the free disk space.") from None


def _run(program: str, url: URL, *arguments: str) -> None:
    """Run one of PostgreSQL's programs, with the password in the environment, where `ps` does not show it."""
    if shutil.which(program) is None:
        raise StoreError(f"{program} is not installed. Install PostgreSQL's client programs, of the server's version.")
    bare = url.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    environment = {**os.environ, **({"PGPASSWORD": str(url.password)} if url.password else {})}
    done = subprocess.run(
        [program, f"--dbname={bare}", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = (done.stderr.splitlines() or ["no reason given"])[0]
        raise StoreError(f"{program} failed ({said}). Use the client programs of the server's version.")
