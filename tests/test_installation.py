"""The environment of the packages: what it is made from, and what a start does after one that failed or was killed."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from dashboard.cli import failures, installation
from dashboard.cli.installation import UNFINISHED
from tests.conftest import ROOT

UV = shutil.which("uv")
BIG = 2**22
"""Bytes of a module that a limit of half as much for a file does not let in."""


def wheel(folder: Path, version: str, size: int = 0) -> None:
    """A real wheel of a package of one module, made by hand: pip needs no network and no build for it."""
    info = f"tinypkg-{version}.dist-info"
    with zipfile.ZipFile(folder / f"tinypkg-{version}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("tinypkg.py", f"version = {version!r}\n" + "#" * size)
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tinypkg\nVersion: {version}\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")


@pytest.fixture(scope="session")
def empty_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pip alone, made once: each test begins with a copy."""
    folder = tmp_path_factory.mktemp("environment") / ".venv"
    venv.create(folder, with_pip=True)
    return folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder (with a space in its path) whose requirements come from a folder of wheels.

    pip and uv have no settings of this machine.
    """
    root = tmp_path / "my project"
    (root / "wheels").mkdir(parents=True)
    wheel(root / "wheels", "1.0")
    requirements = root / "requirements.txt"
    requirements.write_text(f'--no-index\n--find-links "{(root / "wheels").as_uri()}"\ntinypkg==1.0  # why\n')
    monkeypatch.setattr(installation, "ENVIRONMENT", root / ".venv")
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PATH", os.pathsep.join(["/usr/bin", "/bin"]))  # no uv, unless a test says so
    return requirements


@pytest.fixture
def prepared(project: Path, empty_environment: Path) -> Path:
    """The same with an environment that has pip alone."""
    shutil.copytree(empty_environment, installation.ENVIRONMENT, symlinks=True)
    return project


def installed(python: str) -> str:
    code = "import tinypkg; print(tinypkg.version)"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_environment_is_made_once_and_follows_the_requirements_file(project, capfd):
    python = installation.find_python(project)
    assert Path(python).is_relative_to(installation.ENVIRONMENT)
    assert installed(python) == "1.0"
    # Unchanged file: pip is not asked again, or it would fail for want of the wheel.
    next((project.parent / "wheels").glob("*.whl")).unlink()
    assert installation.find_python(project) == python
    # The file has changed, so it is installed again.
    wheel(project.parent / "wheels", "1.1")
    project.write_text(project.read_text().replace("1.0", "1.1"))
    installation.find_python(project)
    assert installed(python) == "1.1"


@pytest.fixture
def locked(prepared: Path) -> Path:
    """The lock of a project, which pip finds through its own lines."""
    (built,) = (prepared.parent / "wheels").glob("*.whl")
    digest = hashlib.sha256(built.read_bytes()).hexdigest()
    lock = prepared.with_suffix(".lock")
    lock.write_text(prepared.read_text().replace("  # why", f" --hash=sha256:{digest}"))
    return lock


def refusal(requirements: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """The last line of a start whose installation fails."""
    with pytest.raises(SystemExit) as stopped:
        installation.find_python(requirements)
    assert stopped.value.code == 2
    return capfd.readouterr().err.splitlines()[-1]


def test_the_lock_is_installed_with_its_hashes(locked: Path, prepared: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Catches an installation that takes a changed package for the locked one, or never reads the lock."""
    own = locked.read_text()
    locked.write_text(own[:-65] + "0" * 64 + "\n")
    assert "requirements.lock could not be installed: a download is not the file" in refusal(prepared, capfd)
    locked.write_text(own)
    assert installed(installation.find_python(prepared)) == "1.0"
    assert "Hashes are not checked" not in capfd.readouterr().out


def test_a_build_from_another_source_is_installed_without_the_lock(
    locked: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Catches a local CPU build of torch that stops the installation because its hash is not in the lock."""
    locked.write_text(locked.read_text()[:-65] + "0" * 64 + "\n")
    monkeypatch.setenv("PIP_FIND_LINKS", str(prepared.parent / "wheels"))
    assert installed(installation.find_python(prepared)) == "1.0"
    said = "Hashes are not checked: pip is set to find-links, whose builds requirements.lock may not list."
    assert said in capfd.readouterr().out


def test_an_installation_prints_a_line_for_each_stage(prepared: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Catches warnings and progress of pip in the log of a start that needs none of them."""
    installation.find_python(prepared)
    out, err = capfd.readouterr()
    begun, ended = out.splitlines()
    assert begun.startswith("Installing requirements.txt with pip")
    assert ended.startswith("Installed in ")
    assert err == ""


def test_an_index_without_a_build_is_said_and_the_next_start_tries_again(
    prepared: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Catches a message about the network where Python is the wrong one, and a failure that is taken for a success."""
    (built,) = (prepared.parent / "wheels").glob("*.whl")
    built.rename(built.with_suffix(".gone"))
    for _ in range(2):
        assert "the index has no build of a package for Python 3." in refusal(prepared, capfd)
    built.with_suffix(".gone").rename(built)
    assert installed(installation.find_python(prepared)) == "1.0"


def test_a_broken_network_leaves_what_was_installed(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Catches a failed download of the tests' packages after which Foretell itself has to be downloaded again."""
    python = installation.find_python(prepared)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    more = prepared.with_name("requirements-dev.txt")
    more.write_text("tinypkg==1.1\n")
    with pytest.raises(SystemExit):
        installation.find_python(prepared, more)
    assert "requirements-dev.txt could not be installed: the package index cannot be reached" in capfd.readouterr().err
    assert installation.find_python(prepared) == python
    assert capfd.readouterr().out == ""


def test_a_full_disk_is_said_and_what_was_installed_does_not_count(
    prepared: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Catches half a package that the next start takes for a whole one. The limit is the system's, for each file."""
    wheel(prepared.parent / "wheels", "1.0", size=BIG)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (BIG // 2, limits[1]))
    try:
        assert "requirements.txt could not be installed: the disk or quota of" in refusal(prepared, capfd)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (installation.ENVIRONMENT / UNFINISHED).exists()  # the next test is what the next start makes of it
    assert not installation.is_installed(prepared)


def start(root: Path, file: Path, **settings: str) -> subprocess.Popen[str]:
    """A start in a process group of its own."""
    code = (
        "import sys; from pathlib import Path; from dashboard.cli import installation as i\n"
        "i.ENVIRONMENT = Path(sys.argv[1]); i.find_python(Path(sys.argv[2]))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, str(root / ".venv"), str(file)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **settings},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_a_killed_installation_is_made_again_by_the_start_that_waits_for_it(prepared: Path) -> None:
    """Catches a half-installed environment that is taken for a whole one, and two starts that install at once."""
    root = prepared.parent
    packages = next(installation.ENVIRONMENT.glob("lib/*/site-packages"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        file = root / "silent.txt"
        file.write_text("tinypkg==1.0\n")
        first = start(root, file, PIP_INDEX_URL=f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        silent.accept()  # pip asks for the package and waits
        second = start(root, prepared)
        assert second.stdout is not None
        assert "Another start of Foretell is installing" in second.stdout.readline()
        # What pip leaves when it is killed before the module is written: the next one takes it for installed.
        (packages / "tinypkg-1.0.dist-info").mkdir()
        (packages / "tinypkg-1.0.dist-info" / "METADATA").write_text("Name: tinypkg\nVersion: 1.0\n")
        os.killpg(first.pid, signal.SIGKILL)
        said, _ = second.communicate(timeout=300)
    first.communicate()
    assert second.returncode == 0
    assert "again, as the last installation did not finish" in said
    assert installed(str(installation.python_of(installation.ENVIRONMENT))) == "1.0"


def test_an_environment_that_cannot_be_made_is_one_sentence(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a traceback where the folder is a file, and advice about Debian where the disk is full."""
    (project.parent / "file").touch()
    monkeypatch.setattr(installation, "ENVIRONMENT", project.parent / "file" / ".venv")
    assert "No environment could be made" in refusal(project, capfd)
    full = OSError(errno.ENOSPC, "No space left on device")
    printed = subprocess.CalledProcessError(1, "ensurepip", output=b"OSError: [Errno 28] No space left on device")
    for error in (full, printed):
        assert failures.explain_environment(error, project).startswith("The disk or quota of")


@pytest.mark.skipif(UV is None, reason="uv is not installed")
def test_uv_installs_what_the_lock_names_by_its_hashes(
    locked: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Catches a uv that does not check the hashes, or is not used although it is there."""
    assert UV is not None
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(UV).parent), os.environ["PATH"]]))
    own = locked.read_text()
    locked.write_text(own[:-65] + "0" * 64 + "\n")
    assert "requirements.lock could not be installed: a download is not the file" in refusal(prepared, capfd)
    locked.write_text(own)
    assert installed(installation.find_python(prepared)) == "1.0"
    assert "Installing requirements.lock with uv" in capfd.readouterr().out


def test_pip_is_used_where_it_has_settings_that_uv_does_not_read(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Catches a uv that installs CUDA, or asks the public index, where pip is set to a mirror or to builds for CPUs."""
    there = prepared.parent / "uv"
    there.touch(mode=0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(there.parent), os.environ["PATH"]]))
    python = installation.python_of(installation.ENVIRONMENT)
    assert installation.choose_installer(python, prepared).command[:2] == [str(there), "pip"]
    monkeypatch.setenv("PIP_FIND_LINKS", str(prepared.parent / "wheels"))
    assert installation.choose_installer(python, prepared).name == "pip"
    assert "uv is not used: pip is set to find-links, which uv does not read." in capfd.readouterr().out


def test_an_active_environment_that_satisfies_is_used_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(installation, "ENVIRONMENT", tmp_path / "never made")
    exact = tmp_path / "requirements.txt"
    exact.write_text(f"pytest=={pytest.__version__}\n")
    assert installation.find_python(exact) == sys.executable
    assert not installation.ENVIRONMENT.exists()
    for unmet in ("pytest==0.0.1\n", "no-such-package-here==1.0\n"):
        exact.write_text(unmet)
        assert not installation.is_satisfied(exact)


def test_a_local_build_tag_counts_as_the_version(tmp_path):
    """torch 2.13.0+cpu satisfies torch==2.13.0."""
    import torch

    file = tmp_path / "requirements.txt"
    file.write_text(f"torch=={torch.__version__.split('+')[0]}\n")
    assert installation.is_satisfied(file)


@pytest.mark.parametrize(("system", "expected"), [("nt", "Scripts/python.exe"), ("posix", "bin/python")])
def test_interpreter_path_on_each_system(system, expected, monkeypatch):
    environment = Path("some") / ".venv"
    monkeypatch.setattr(installation.os, "name", system)
    found = installation.python_of(environment)
    monkeypatch.undo()
    assert found.as_posix() == f"some/.venv/{expected}"


def test_the_lock_pins_what_the_requirements_name_and_all_of_it_by_hashes():
    """A version changed in one of the two files only, or a package without a hash."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if "==" in line]
    hashed = [one for one, two in itertools.pairwise(lines) if "==" in one and "--hash=sha256:" in two]
    assert pins == hashed
    locked = dict(line.split()[0].split("==") for line in pins)
    named = installation.read_pins(ROOT / "requirements.txt")
    assert {name: locked.get(name) for name in named} == named
    assert len(locked) > len(named)
