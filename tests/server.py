"""A real server in its own process, over a workspace of the test's own."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import httpx
from playwright.sync_api import BrowserContext

from dashboard.shared.service import COOKIE
from study.service import Service
from tests.commands import start
from tests.ports import free_port

ROOT = Path(__file__).parents[1]


class Server:
    """uvicorn on a free port; `kill` is kill -9, `start` may be called again. `open_files` is what `ulimit -n` says."""

    def __init__(self, home: Path, open_files: int | None = None) -> None:
        self.home = home
        self._open_files = open_files
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: ForkServerProcess | None = None

    def start(self, patience_s: float = 300) -> None:
        """Start and wait until it answers."""
        log = self.home / "server.log"
        self._process = start(
            *("serve", "--no-browser", "--no-demo", "--port", self.port),
            out=log,
            err=log,
            environment={"FORETELL_HOME": str(self.home)},
            open_files=self._open_files,
        )
        deadline = time.monotonic() + patience_s
        while True:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/runner/runner.js", timeout=20).status_code == 200:
                    return
            if not self._process.is_alive() or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {self.log()}")
            time.sleep(0.05)

    def login(self) -> dict[str, str]:
        """The cookie of a researcher, by a login link as the command prints it."""
        with Service(self.home) as service:
            reply = httpx.get(self.url + service.access.login_link())
        return {COOKIE: reply.cookies[COOKIE]}

    def let_in(self, context: BrowserContext) -> None:
        """Log a browser in to the researcher's pages."""
        context.add_cookies([{"name": name, "value": value, "url": self.url} for name, value in self.login().items()])

    def kill(self) -> None:
        """kill -9: no goodbye, nothing flushed."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """An orderly end."""
        self._end(signal.SIGTERM)

    def cpu_s(self) -> float:
        """Processor seconds the server has used so far, on Linux; else 0."""
        file = Path(f"/proc/{self._process.pid}/stat") if self._process else Path("/nowhere")
        if not file.is_file():
            return 0.0
        user, system = file.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def written_bytes(self) -> int:
        """Bytes the server has sent to the disk so far, on Linux; else 0."""
        file = Path(f"/proc/{self._process.pid}/io") if self._process else Path("/nowhere")
        lines = file.read_text().splitlines() if file.is_file() else []
        return next((int(line.split()[1]) for line in lines if line.startswith("write_bytes")), 0)

    def threads_cpu_s(self) -> dict[int, float]:
        """Processor seconds of each of the server's threads so far, the main one under 0, on Linux; else nothing."""
        if self._process is None:
            return {}
        pid, used = self._process.pid, {}
        for task in Path(f"/proc/{pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):  # a thread may end meanwhile
                number = int(task.parent.name)
                user, system = task.read_text().rpartition(")")[2].split()[11:13]
                used[0 if number == pid else number] = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        return used

    def log(self) -> str:
        """What the server wrote."""
        return (self.home / "server.log").read_text()

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.is_alive():
            os.kill(self._process.pid or 0, number)
            self._process.join(300)
            assert self._process.exitcode is not None, f"the server goes on after signal {number}"


@contextlib.contextmanager
def serving(home: Path, open_files: int | None = None) -> Iterator[Server]:
    """A running server, ended at the end."""
    server = Server(home, open_files)
    server.start()
    try:
        yield server
    finally:
        server.kill()
