"""``doctor``: check this installation."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import typer

from dashboard.cli.terminal import say

OLDEST_SQLITE = (3, 37, 0)  # STRICT tables


def doctor() -> None:
    """Check this installation, one line per check. Exit code 1 if a check fails.

    Example: python foretell.py doctor
    """
    from study.workspace.workspace import ROOT

    os.chdir(ROOT)  # as serve does: Streamlit reads its settings from the working directory
    failed = 0
    for check in CHECKS:
        name = check.__name__.strip("_")
        try:
            say(f"ok    {name}: {check()}")
        except Exception as error:
            failed += 1
            say(f"FAIL  {name}: {error}")
    if failed:
        raise typer.Exit(1)


def _python() -> str:
    return sys.version.split()[0]


def _packages() -> str:
    from study.workspace.workspace import ROOT

    lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if "==" in line]
    here = [line for line in lines if sys.platform != "win32" or 'sys_platform != "win32"' not in line]
    pins = [line.partition(";")[0].split("==") for line in here]
    wrong = [f"{name} is not {version}" for name, version in pins if _find_version(name) != version]
    if wrong:
        raise RuntimeError("; ".join(wrong) + ". Run: pip install -r requirements.txt")
    return f"{len(pins)} at their pinned versions"


def _find_version(package: str) -> str:
    try:
        return importlib.metadata.version(package).split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return "installed"


def _torchvision() -> str:
    from core import loading
    from core.network.device import default_device

    module = loading.import_torchvision()
    repaired = " (operators declared for a CPU build of torch)" if loading.has_declared_operators() else ""
    return f"{module.__version__} on {default_device()}{repaired}"


def _classifier() -> str:
    from study.network.sources import open_classifier

    classifier = open_classifier("scenes", Path.cwd())
    return f"built-in network of {len(classifier.categories)} categories, {classifier.fingerprint[:12]}"


def _gradients() -> str:
    """Say which networks' gradients oneDNN computes on this processor, of those that were timed."""
    from core.network.timing import locate_choices, name_instructions, name_processor, read_choices

    file = locate_choices()
    choices = read_choices(file)
    processor = f"{name_processor()}, {name_instructions()}"
    if not choices:
        return f"{processor}; timed when a network is first used"
    return f"{processor}; oneDNN is faster for {sum(choices.values())} of {len(choices)} networks ({file})"


def _workspace() -> str:
    from study.workspace.workspace import find_folder

    folder = find_folder()
    if not folder.is_dir():
        parent = next(path for path in folder.absolute().parents if path.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise RuntimeError(f"The workspace {folder} cannot be created in {parent}. Set FORETELL_HOME to another.")
        return f"{folder} does not exist yet; the first start creates it"
    with tempfile.NamedTemporaryFile(dir=folder):
        free = shutil.disk_usage(folder).free / 2**30
    if free < 1:
        raise RuntimeError(f"{folder} has {free:.1f} GiB free; free at least 1 GiB")
    return f"{folder} ({free:.0f} GiB free)"


def _modes() -> str:
    """Check that no other user of this machine can read ids, responses and the key."""
    from study.workspace.workspace import find_folder, readable_by_others

    if os.name != "posix":
        return "not checked on this system"
    readable = readable_by_others(find_folder())
    if readable:
        commands = "; ".join(f"chmod {700 if path.is_dir() else 600} {path}" for path in readable)
        raise RuntimeError(f"other users of this machine can read the workspace. Run: {commands}")
    return f"{find_folder()} is readable by its owner only"


def _sqlite() -> str:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise RuntimeError(f"SQLite {sqlite3.sqlite_version} is too old; use a Python with 3.37 or newer")
    return sqlite3.sqlite_version


def _sso() -> str:
    from study.collection.access.provider import FILE, provider_of
    from study.workspace.workspace import find_folder

    provider = provider_of(find_folder())
    if provider is None:
        return f"no provider ({find_folder() / FILE} does not exist)"
    listed = f"{len(provider.people)} addresses and {len(provider.domains)} domains may log in"
    if provider.administrators:
        listed += f", {len(provider.administrators)} addresses as administrators"
    return f"{provider.name}, {provider.issuer}; {listed}; callback URL to register: {provider.callback}"


def _prolific() -> str:
    from study.participation.prolific import FILE, signatures_of
    from study.workspace.workspace import find_folder

    signatures = signatures_of(find_folder())
    if signatures is None:
        return f"links need no signature ({find_folder() / FILE} does not exist)"
    settings, keys = signatures
    return f"links to {', '.join(settings.studies)} must be signed by one of {len(keys.keys)} keys"


def _telemetry() -> str:
    from streamlit import config

    if config.get_option("browser.gatherUsageStats"):
        raise RuntimeError("Streamlit would report usage; start through foretell.py, or set browser.gatherUsageStats")
    return "off"


def _browser() -> str:
    find: Callable[[str], str | None] = shutil.which
    path = os.environ.get("FORETELL_CHROMIUM") or find("chromium") or find("google-chrome")
    return path or "no Chromium found; only the browser tests need one"


CHECKS: tuple[Callable[[], str], ...] = (
    _python,
    _packages,
    _torchvision,
    _classifier,
    _gradients,
    _workspace,
    _modes,
    _sqlite,
    _sso,
    _prolific,
    _telemetry,
    _browser,
)
