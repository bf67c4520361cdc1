"""The entry script: which Python it uses, when it installs, and what it says when something is missing."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

import foretell
from tests.ports import free_port


def wheel(folder: Path, version: str) -> None:
    """A real wheel of a package of one module, made by hand: pip needs no network and no build for it."""
    info = f"tinypkg-{version}.dist-info"
    with zipfile.ZipFile(folder / f"tinypkg-{version}-py3-none-any.whl", "w") as file:
        file.writestr("tinypkg.py", f"version = {version!r}\n")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tinypkg\nVersion: {version}\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project folder (with a space in its path) whose requirements come from a folder of wheels."""
    root = tmp_path / "my project"
    (root / "wheels").mkdir(parents=True)
    wheel(root / "wheels", "1.0")
    requirements = root / "requirements.txt"
    requirements.write_text(f'--no-index\n--find-links "{(root / "wheels").as_uri()}"\ntinypkg==1.0  # why\n')
    monkeypatch.setattr(foretell, "ENVIRONMENT", root / ".venv")
    monkeypatch.chdir(tmp_path)
    return requirements


def installed(python: str) -> str:
    code = "import tinypkg; print(tinypkg.version)"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_environment_is_made_once_and_follows_the_requirements_file(project, capfd):
    python = foretell.find_python(project)
    assert Path(python).is_relative_to(foretell.ENVIRONMENT)
    assert installed(python) == "1.0"
    # Unchanged file: pip is not asked again, or it would fail for want of the wheel.
    next((project.parent / "wheels").glob("*.whl")).unlink()
    assert foretell.find_python(project) == python
    # Changed file: installed anew.
    wheel(project.parent / "wheels", "1.1")
    project.write_text(project.read_text().replace("1.0", "1.1"))
    foretell.find_python(project)
    assert installed(python) == "1.1"


@pytest.fixture
def locked(project, monkeypatch):
    """The same project with a lock that pip finds through its own lines; pip has no settings of this machine."""
    for name in ("FIND_LINKS", "EXTRA_INDEX_URL", "NO_INDEX"):
        monkeypatch.delenv(f"PIP_{name}", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    (built,) = (project.parent / "wheels").glob("*.whl")
    digest = hashlib.sha256(built.read_bytes()).hexdigest()
    lock = project.with_suffix(".lock")
    lock.write_text(project.read_text().replace("  # why", f" --hash=sha256:{digest}"))
    return lock


@pytest.mark.slow
def test_the_lock_is_installed_with_its_hashes(locked, project, capfd):
    """Catches an installation that takes a changed package for the locked one, or never reads the lock."""
    own = locked.read_text()
    locked.write_text(own[:-65] + "0" * 64 + "\n")
    with pytest.raises(SystemExit):
        foretell.find_python(project)
    assert "Error: pip could not install requirements.lock." in capfd.readouterr().err
    locked.write_text(own)
    assert installed(foretell.find_python(project)) == "1.0"
    assert "Hashes are not checked" not in capfd.readouterr().out


def test_a_build_from_another_source_is_installed_without_the_lock(locked, project, monkeypatch, capfd):
    """Catches a local CPU build of torch that stops the installation because its hash is not in the lock."""
    locked.write_text(locked.read_text()[:-65] + "0" * 64 + "\n")
    monkeypatch.setenv("PIP_FIND_LINKS", str(project.parent / "wheels"))
    assert installed(foretell.find_python(project)) == "1.0"
    said = "Hashes are not checked: pip is set to find-links, whose builds requirements.lock may not list."
    assert said in capfd.readouterr().out


def test_a_failed_installation_says_so_and_is_tried_again(project, capfd):
    next((project.parent / "wheels").glob("*.whl")).unlink()
    for _ in range(2):
        with pytest.raises(SystemExit) as stopped:
            foretell.find_python(project)
        assert stopped.value.code == 2
        assert "Error: pip could not install requirements.txt. Check the network" in capfd.readouterr().err


def test_an_active_environment_that_satisfies_is_used_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(foretell, "ENVIRONMENT", tmp_path / "never made")
    exact = tmp_path / "requirements.txt"
    exact.write_text(f"pytest=={pytest.__version__}\n")
    assert foretell.find_python(exact) == sys.executable
    assert not foretell.ENVIRONMENT.exists()
    for unmet in ("pytest==0.0.1\n", "no-such-package-here==1.0\n"):
        exact.write_text(unmet)
        assert not foretell.is_satisfied(exact)


def test_a_local_build_tag_counts_as_the_version(tmp_path):
    """torch 2.13.0+cpu satisfies torch==2.13.0."""
    import torch

    file = tmp_path / "requirements.txt"
    file.write_text(f"torch=={torch.__version__.split('+')[0]}\n")
    assert foretell.is_satisfied(file)


@pytest.mark.parametrize(("system", "expected"), [("nt", "Scripts/python.exe"), ("posix", "bin/python")])
def test_interpreter_path_on_each_system(system, expected, monkeypatch):
    environment = Path("some") / ".venv"
    monkeypatch.setattr(foretell.os, "name", system)
    found = foretell.python_of(environment)
    monkeypatch.undo()
    assert found.as_posix() == f"some/.venv/{expected}"


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
        started.wait(30)
        with pytest.raises(httpx.ConnectError):
            httpx.get(page)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)


def until(met: Callable[[], bool], patience_s: float = 60) -> None:
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


def test_the_lock_pins_what_the_requirements_name_and_all_of_it_by_hashes():
    """A version changed in one of the two files only, or a package without a hash."""
    lines = (foretell.ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if "==" in line]
    hashed = [one for one, two in itertools.pairwise(lines) if "==" in one and "--hash=sha256:" in two]
    assert pins == hashed
    locked = dict(line.split()[0].split("==") for line in pins)
    named = foretell.read_pins(foretell.RUNTIME)
    assert {name: locked.get(name) for name in named} == named
    assert len(locked) > len(named)
