"""A user's own files: bundles, databases, downloads. Never inside the code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from core.errors import ForetellError
from study.bundle import MANIFEST, Bundle
from study.workspace.files import PRIVATE

VARIABLE = "FORETELL_HOME"
DATABASE = "FORETELL_DATABASE"
KEY = "participants.key"
ROOT = Path(__file__).resolve().parents[2]


def home() -> Path:
    """Return the workspace folder, created if missing.

    It is ``FORETELL_HOME``; else ``workspace`` in the checkout, or ``foretell-workspace`` in the user's home where
    Foretell is an installed package.
    """
    folder = find_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ForetellError(
            f"The workspace {folder} cannot be created ({error.strerror}). Set {VARIABLE} to a writable folder."
        ) from None
    return folder.resolve()


def find_folder() -> Path:
    """Return the workspace folder, which may not exist yet: commands that only read do not create it."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    return ROOT / "workspace" if (ROOT / "foretell.py").is_file() else Path.home() / "foretell-workspace"


def readable_by_others(home: Path) -> list[Path]:
    """List the workspace, its databases and its key if other users of this machine can read them."""
    if os.name != "posix":
        return []
    private = [home, home / KEY, *home.glob("*.db*"), *home.glob("*.ends")]
    return [path for path in private if path.exists() and path.stat().st_mode & PRIVATE]


def close_to_others() -> Iterator[str]:
    """Close a workspace of an earlier version to other users; yield one sentence for each kind of change.

    The folder's own mode keeps them out of everything below it.
    """
    folder = find_folder()
    paths = readable_by_others(folder) if folder.is_dir() else []
    failed = []
    for path in paths:
        try:
            path.chmod(0o700 if path.is_dir() else 0o600)
        except OSError:
            failed.append(path)
    if len(failed) < len(paths):
        closed = ", ".join(str(path) for path in paths if path not in failed)
        yield f"Other users of this machine could read the workspace. Closed to them now: {closed}."
    if failed:
        named = ", ".join(map(str, failed))
        yield f"Other users of this machine can read {named}, and this user may not change that. Ask its owner."


def database(home: Path) -> str | Path:
    """Return the database's URL (``FORETELL_DATABASE``), or else its file, ``foretell.db`` in the workspace."""
    return os.environ.get(DATABASE) or home / "foretell.db"


def require_workspace() -> None:
    """Refuse a folder where no study was ever opened: who reads or saves a workspace named another one by mistake."""
    folder = find_folder()
    place = database(folder)
    if not (folder / KEY).exists() and not (isinstance(place, Path) and place.exists()):
        raise ForetellError(f"There is no workspace at {folder.absolute()}. Set {VARIABLE} to the folder of yours.")


def bundles(home: Path) -> list[Path]:
    """List the finished bundles of a workspace, newest first."""
    manifests = [path for path in (home / "bundles").glob(f"*/{MANIFEST}") if path.exists()]
    return [path.parent for path in sorted(manifests, key=lambda path: path.stat().st_mtime, reverse=True)]


def bundle_named(home: Path, name: str) -> Bundle:
    """Open the newest bundle of a study name, or the bundle in a folder."""
    if (Path(name) / MANIFEST).is_file():
        return Bundle(Path(name))
    candidates = bundles(home)
    for path in candidates:
        if name in (path.name, study_name(path)):
            return Bundle(path)
    known = ", ".join(sorted({study_name(path) for path in candidates})) or "none yet"
    raise ForetellError(f"There is no built study {name!r} in {home} (built: {known}). Build it first.")


def study_name(folder: Path) -> str:
    """Extract the study's name from its bundle's folder, ``<study>-<key>``."""
    return folder.name.rpartition("-")[0]


def study_files(home: Path) -> list[Path]:
    """List study files: those of the project, then the workspace's own in ``studies``."""
    return [*sorted((ROOT / "data" / "studies").glob("*.toml")), *sorted((home / "studies").glob("*.toml"))]
