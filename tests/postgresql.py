"""A real PostgreSQL of the tests' own: Debian's programs, a folder and a port of its own; it can be killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg

from tests.ports import free_port

FOUND = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
SETTINGS = "listen_addresses='127.0.0.1' max_connections=200 shared_buffers=32MB log_min_messages=fatal"


class Postgresql:
    """One server; `database` makes an empty database and gives its URL."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="foretell-pg-"))
        self._bin = FOUND[-1].parent
        self.port = free_port()
        self._made = 0
        if os.geteuid() == 0:  # initdb refuses root
            shutil.chown(self._folder, "postgres", "postgres")
        self._run("initdb", "-D", str(self._data), "-U", "foretell", "-A", "trust", "-E", "UTF8", "--no-locale")

    def start(self) -> None:
        """Start and wait until it answers."""
        options = " ".join(f"-c {setting}" for setting in SETTINGS.split()) + f" -p {self.port} -k {self._folder}"
        self._run(
            "pg_ctl", "-D", str(self._data), "-w", "-t", "300", "-l", str(self._folder / "log"), "-o", options, "start"
        )

    def kill(self) -> None:
        """No goodbye: the postmaster and everyone it serves."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self._run("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")

    def database(self) -> str:
        """URL of a new, empty database."""
        self._made += 1
        name = f"test_{self._made}"
        with psycopg.connect(self._url("postgres"), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}")
        return self._url(name)

    def remove(self) -> None:
        """Stop and leave nothing."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _url(self, name: str) -> str:
        return f"postgresql://foretell@127.0.0.1:{self.port}/{name}"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._bin / program), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(
            command, check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
