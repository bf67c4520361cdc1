"""How long the first start takes: ``python -m benchmarks.first_start``.

A copy of the sources with an empty workspace is started as a user starts it. A real Chromium opens Home as soon as the
server listens, then Explore, and waits for the first heatmap; then the demo study is waited for. With ``--install`` the
copy first installs its packages into an environment of its own, with the Python that this one was made from. Seconds
are counted from the end of the installation; processor seconds wait for no other program.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page, sync_playwright

from benchmarks.machine import arguments, hand_over
from foretell import ROOT
from tests.conftest import CHROMIUM
from tests.ports import free_port

SOURCES = ("core", "data", "study", "inquiry", "dashboard", "docs", ".streamlit")
INSTALLED, LINK, READY = "Installed in", "This link opens", "The demo study is ready."
HEATMAP = ".st-key-explore_heatmap :is(img, canvas, .js-plotly-plot)"
PATIENCE_S = 1800.0


class Start:
    """A start of Foretell in a folder of its own; its lines, each with the time at which it came."""

    def __init__(self, folder: Path, python: str) -> None:
        self.port, self.began = free_port(), time.perf_counter()
        self.lines: dict[str, float] = {}
        self._process = subprocess.Popen(
            [python, "foretell.py", "serve", "--no-browser", "--port", str(self.port)],
            cwd=folder,
            env=_environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines[line.strip()] = time.perf_counter()

    def find(self, text: str) -> tuple[str, float] | None:
        """Return the line with this text and its time, if it has come."""
        return next(((line, at) for line, at in list(self.lines.items()) if text in line), None)

    def wait(self, text: str) -> tuple[str, float]:
        """Wait for the line with this text."""
        while (line := self.find(text)) is None:
            self.check()
            time.sleep(0.05)
        return line

    def check(self) -> None:
        """Raise `RuntimeError` if the start has failed."""
        if self._process.poll() is not None or time.perf_counter() - self.began > PATIENCE_S:
            raise RuntimeError("\n".join(self.lines))

    def listen(self) -> float:
        """Wait until the server replies; return the time."""
        while True:
            self.check()
            try:
                httpx.get(f"http://127.0.0.1:{self.port}/runner/runner.js", timeout=5)
            except httpx.TransportError:
                time.sleep(0.02)
            else:
                return time.perf_counter()

    def measure_processor(self) -> dict[str, float] | None:
        """Measure the processor seconds of the server, and of the processes that it has waited for; on Linux.

        The server is the process that was started, so that it has waited for the installation, too.
        """
        file = Path(f"/proc/{self._process.pid}/stat")
        if not file.is_file():
            return None
        fields = [int(field) for field in file.read_text().rpartition(")")[2].split()[11:15]]
        tick = os.sysconf("SC_CLK_TCK")
        return {"server": sum(fields[:2]) / tick, "background": sum(fields[2:]) / tick}

    def stop(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.wait(30)


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of a user: nothing of this one's packages, and modules are compiled once."""
    left_out = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "OMP_NUM_THREADS"}
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return kept | {"FORETELL_HOME": str(folder / "workspace"), "PYTHONUNBUFFERED": "1"}


@contextmanager
def starting(python: str) -> Iterator[tuple[Start, Path]]:
    """Start Foretell in a copy of the sources, which is removed at the end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "foretell"
        for part in SOURCES:
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "_build"))
        for file in (ROOT / "foretell.py", *ROOT.glob("requirements*"), *ROOT.glob("*.toml")):
            shutil.copy(file, folder)
        start = Start(folder, python)
        try:
            yield start, folder
        finally:
            start.stop()


def measure(*, install: bool) -> dict[str, Any]:
    """Measure the stages of one first start, s, each from the end of the installation."""
    python = getattr(sys, "_base_executable", sys.executable) if install else sys.executable
    with starting(python) as (start, folder):
        installed = start.wait(INSTALLED)[1] if install else start.began
        at: dict[str, float] = {"listens": start.listen()}
        processor = {"listens": start.measure_processor()}
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(PATIENCE_S * 1000)
            _visit(start, page, at, processor)
            browser.close()
        at["demo"] = start.wait(READY)[1]
        processor["demo"] = start.measure_processor()
        size = sum(file.lstat().st_size for file in (folder / ".venv").rglob("*"))
        lines, characters = len(start.lines), sum(map(len, start.lines))
    return {
        "install_s": round(installed - start.began, 1) if install else None,
        "installed_gb": round(size / 1e9, 2) if install else None,
        "after_installation_s": {stage: round(then - installed, 1) for stage, then in at.items()},
        "processor_s": processor,
        "output": {"lines": lines, "characters": characters},
        "load_average_1min_at_end": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def _visit(start: Start, page: Page, at: dict[str, float], processor: dict[str, Any]) -> None:
    """Open Home by the link that was printed, then Explore, and note when each shows what it is for."""
    link = re.findall(r"http://\S+", start.wait(LINK)[0])[-1]
    page.goto(link)
    page.get_by_role("heading", level=1).wait_for()
    at["home"], processor["home"] = time.perf_counter(), start.measure_processor()
    page.goto(f"http://127.0.0.1:{start.port}/explore")
    page.locator(HEATMAP).first.wait_for()
    at["first heatmap"], processor["first heatmap"] = time.perf_counter(), start.measure_processor()


if __name__ == "__main__":
    parser = arguments("first_start")
    parser.add_argument("--install", action="store_true", help="also install the packages, into a new environment")
    given = parser.parse_args()
    hand_over("first_start", given, lambda: measure(install=given.install))
