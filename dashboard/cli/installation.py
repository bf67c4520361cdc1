"""The environment of the packages: made in ``.venv`` once, again when the requirements change. Standard library only.

An installation is whole when its stamp is there. From its first to its last step a mark says that it is unfinished, so
that one that was killed is never taken for a whole one: the next start begins with an empty folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dashboard.cli import failures

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv"
NOT_WINDOWS = 'sys_platform != "win32"'
UNFINISHED = "unfinished"
"""A file in ``.venv`` while packages are installed into it."""
OTHER_SOURCES = {"find-links", "extra-index-url", "no-index"}
"""Settings of pip that name builds of a package besides those of its index; a mirror has the same files."""
OWN_SOURCES = OTHER_SOURCES | {"index-url", "constraint", "cert", "proxy"}
"""Settings of pip that uv does not read."""
OTHER_SOURCES_OF_UV = ("UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_INDEX", "UV_NO_INDEX", "UV_TORCH_BACKEND")


def fail(message: str) -> int:
    """Print one sentence on stderr; exit with code 2."""
    sys.stderr.write(f"Error: {message}\n")
    return 2


def tell(line: str) -> None:
    """Print a line at once, also where the output is a file."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def find_python(*requirements: Path) -> str:
    """Find a Python that satisfies the requirement files: the active one if it does, else that of ``.venv``."""
    if all(is_satisfied(file) for file in requirements):
        return sys.executable
    if not all(map(is_installed, requirements)):
        try:
            with one_at_a_time():
                for file in requirements:
                    if not is_installed(file):
                        install(file)
        except (subprocess.CalledProcessError, OSError) as error:
            raise SystemExit(fail(failures.explain_environment(error, ENVIRONMENT))) from None
    return str(python_of(ENVIRONMENT))


def python_of(environment: Path) -> Path:
    """Return the interpreter of a virtual environment, on any system."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def read_pins(file: Path) -> dict[str, str]:
    """Read ``{package: version}`` from a requirements file of exact pins, without what is not for this system."""
    lines = (line.split("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    pins = (line.partition(";")[0].strip() for line in lines if sys.platform != "win32" or NOT_WINDOWS not in line)
    return dict(pin.split("==") for pin in pins if "==" in pin)


def is_satisfied(file: Path) -> bool:
    """Tell whether the running interpreter has every pinned package (ignoring a local build tag such as +cpu)."""
    unfinished = Path(sys.prefix) == ENVIRONMENT and (ENVIRONMENT / UNFINISHED).exists()
    try:
        return not unfinished and all(
            importlib.metadata.version(package).split("+")[0] == version for package, version in read_pins(file).items()
        )
    except importlib.metadata.PackageNotFoundError:
        return False


def is_installed(file: Path) -> bool:
    """Tell whether ``.venv`` has all that a requirements file and its lock name, and its Python is still there."""
    stamp = find_stamp(file)
    whole = stamp.is_file() and not (ENVIRONMENT / UNFINISHED).exists() and python_of(ENVIRONMENT).is_file()
    return whole and stamp.read_text() == compute_digest(file)


def find_stamp(file: Path) -> Path:
    """Return the file that says with which content a requirements file was installed."""
    return ENVIRONMENT / f"{file.stem}.sha256"


def compute_digest(file: Path) -> str:
    """Hash a requirements file and its lock (SHA-256)."""
    both = (file, file.with_suffix(".lock"))
    return hashlib.sha256(b"".join(one.read_bytes() for one in both if one.is_file())).hexdigest()


class Installer(NamedTuple):
    """The command that installs a file of requirements, and the program that it runs."""

    name: str
    command: list[str]
    source: Path


def install(file: Path) -> None:
    """Install a requirements file into ``.venv``, from its lock where that applies; make ``.venv`` if need be."""
    python, began = make_environment(), time.monotonic()
    chosen, mark = choose_installer(python, file), ENVIRONMENT / UNFINISHED
    tell(f"Installing {chosen.source.name} with {chosen.name} (once; minutes, as torch is large) ...")
    mark.touch()
    done = subprocess.run(chosen.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        kind = failures.find_kind(done.stdout)
        if kind in failures.BEFORE_INSTALLING:
            mark.unlink()
        raise SystemExit(fail(failures.explain_installation(kind, chosen.source.name, ENVIRONMENT)))
    find_stamp(file).write_text(compute_digest(file))
    mark.unlink()
    tell(f"Installed in {time.monotonic() - began:.0f} s.")


def make_environment() -> Path:
    """Return the Python of ``.venv``, made now if there is none or its installation was interrupted."""
    python = python_of(ENVIRONMENT)
    if python.is_file() and not (ENVIRONMENT / UNFINISHED).exists():
        return python
    again = "again, as the last installation did not finish " if (ENVIRONMENT / UNFINISHED).exists() else ""
    tell(f"Making {ENVIRONMENT} {again}...")
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    ENVIRONMENT.mkdir(parents=True)
    (ENVIRONMENT / UNFINISHED).touch()
    venv.create(ENVIRONMENT, with_pip=True)
    return python


def choose_installer(python: Path, file: Path) -> Installer:
    """Choose uv where it is installed and would take the same packages as pip, else pip."""
    lock, uv, sources = file.with_suffix(".lock"), shutil.which("uv"), read_sources(python)
    if uv and sources & OWN_SOURCES:
        tell(f"uv is not used: pip is set to {', '.join(sorted(sources & OWN_SOURCES))}, which uv does not read.")
        uv = None
    others = {name for name in OTHER_SOURCES_OF_UV if os.environ.get(name)} if uv else sources & OTHER_SOURCES
    if lock.is_file() and others:
        named = f"{'uv' if uv else 'pip'} is set to {', '.join(sorted(others))}"
        tell(f"Hashes are not checked: {named}, whose builds {lock.name} may not list.")
    checked = lock.is_file() and not others
    source = lock if checked else file
    given = [*(["--require-hashes"] if checked else []), "-r", str(source)]
    if uv:
        # Else the first page waits while torch is compiled, on one core.
        return Installer("uv", [uv, "pip", "install", "--python", str(python), "--compile-bytecode", *given], source)
    quiet = ["--disable-pip-version-check", "--quiet"]
    return Installer("pip", [str(python), "-m", "pip", "install", *quiet, *given], source)


def read_sources(python: Path) -> set[str]:
    """Return the names of pip's settings on this machine."""
    listed = subprocess.run([python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False).stdout
    return {line.split("=")[0].rpartition(".")[2] for line in listed.splitlines()}


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let a second start wait until the first has installed; the system releases the lock when its process dies."""
    ENVIRONMENT.parent.mkdir(parents=True, exist_ok=True)
    with ENVIRONMENT.with_name(f"{ENVIRONMENT.name}.lock").open("w") as file:
        if not lock_file(file.fileno()):
            tell("Another start of Foretell is installing the packages; waiting for it ...")
            while not lock_file(file.fileno()):
                time.sleep(0.5)
        yield


def lock_file(number: int) -> bool:
    """Lock an open file without waiting; False while another process has it."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
