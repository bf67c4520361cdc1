"""The entry script: which Python it uses, when it installs, and what it says when something is missing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

import foretell
from tests.ports import free_port


def test_no_browser_fails_unless_it_is_waived(monkeypatch, capfd):
    commands = []
    monkeypatch.setattr(foretell, "find_python", lambda *files: sys.executable)
    monkeypatch.setattr(foretell, "find_chromium", lambda python: None)
    monkeypatch.setattr(foretell.subprocess, "call", lambda command, **options: commands.append(command) or 0)
    assert foretell.main(["test"]) == 2
    assert commands == []
    assert "No Chromium could be found or installed" in capfd.readouterr().err
    assert foretell.main(["test", "--no-browser", "-k", "masks"]) == 0
    assert commands[0][-4:] == ["-k", "masks", "-m", "not browser"]


def test_a_named_chromium_that_is_not_there_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setenv("FORETELL_CHROMIUM", str(tmp_path / "none"))
    assert foretell.find_installed_chromium() is None


def test_the_tests_run_with_one_thread_per_process(tmp_path: Path) -> None:
    """Catches test processes whose threads wait for each other's cores: the tests of concepts took 16 times as long."""
    file = tmp_path / "test_threads.py"
    file.write_text("import torch\n\ndef test_threads():\n    assert torch.get_num_threads() == 1\n")
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    command = [sys.executable, str(foretell.ROOT / "foretell.py"), "test", "--no-browser", "-n", "0", str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_old_python_is_told_in_words(monkeypatch, capfd):
    monkeypatch.setattr(foretell.sys, "version_info", (3, 10, 1))
    assert foretell.main(["build"]) == 2
    assert "Foretell needs Python 3.11 or newer" in capfd.readouterr().err


def test_what_is_started_finds_the_packages_from_any_folder(tmp_path):
    """The user's own folders called like ours must not be imported instead."""
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "__init__.py").write_text("raise RuntimeError('the wrong core')\n")
    command = [sys.executable, str(foretell.ROOT / "foretell.py"), "explain", "--list"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("gradient: ")


@pytest.mark.skipif(os.name == "nt", reason="no signals there")
def test_a_signal_to_the_command_stops_the_server(tmp_path: Path) -> None:
    """Catches a server that outlives the process that was started: it would hold the port and the database."""
    port = free_port()
    command = [sys.executable, str(foretell.ROOT / "foretell.py"), "serve", "--no-browser", "--no-demo"]
    environment = {**os.environ, "FORETELL_HOME": str(tmp_path)}
    started = subprocess.Popen([*command, "--port", str(port)], env=environment, start_new_session=True)
    try:
        page = f"http://127.0.0.1:{port}/run/x"
        until(lambda: httpx.get(page).status_code == 200)
        started.terminate()
        started.wait(300)
        with pytest.raises(httpx.ConnectError):
            httpx.get(page)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)


def until(met: Callable[[], bool], patience_s: float = 300) -> None:
    """Wait for what a server has to do first."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        with contextlib.suppress(httpx.TransportError):
            if met():
                return
        time.sleep(0.1)
    raise AssertionError("it did not come")


def test_a_strangers_weights_run_no_program(tmp_path: Path) -> None:
    """A pickle that would write a file, loaded as carelessly as can be by something Foretell starts."""
    code = (
        "import pathlib, sys, torch\n"
        "class Evil:\n"
        "    def __reduce__(self): return pathlib.Path.touch, (pathlib.Path(sys.argv[1], 'ran'),)\n"
        "torch.save(Evil(), sys.argv[1] + '/weights.pt')\n"
        "torch.load(sys.argv[1] + '/weights.pt', weights_only=False)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, env=foretell.child_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "weights" in done.stderr.lower()
    assert (tmp_path / "weights.pt").exists()
    assert not (tmp_path / "ran").exists()
