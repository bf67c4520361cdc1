"""The folders whose files accounts may name: the workspace's own, and those that its administrator lists.

Accounts have a browser and no shell. Whoever has a shell on this machine may name every file.
"""

from __future__ import annotations

from pathlib import Path

from core.files import FileLimits
from core.text import read_text

CODE = ("models", "methods", "rules")
"""Folders of the workspace with files that run; only administrators add to them."""
IMAGES = ("images", "pictures")
LISTS = "studies/*.images"
"""Lists of images that the page Design writes next to a study file."""
ALLOWED = "folders.txt"
"""A file in the workspace with further folders whose files accounts may read, one absolute path per line."""
REMEDY = (
    "Put the files into the workspace under Models & images, or ask an administrator to name them in the study or to "
    f"list their folder in {ALLOWED} of the workspace."
)


def find_limits(home: Path) -> FileLimits:
    """Find the folders to which accounts are limited in a workspace."""
    lists = tuple(path.resolve() for path in home.glob(LISTS) if path.is_dir())
    data = (*_list_roots(home, IMAGES), *lists, *list_allowed(home))
    return FileLimits(_list_roots(home, CODE), data, (home.resolve(),), REMEDY)


def list_allowed(home: Path) -> tuple[Path, ...]:
    """List the folders outside the workspace that its administrator allowed."""
    file = home / ALLOWED
    lines = read_text(file).splitlines() if file.is_file() else []
    paths = [Path(line.strip()) for line in lines if line.strip() and not line.startswith("#")]
    return tuple(path.resolve() for path in paths if path.is_absolute())


def find_sets(home: Path) -> Path:
    """Find the folder of image sets: ``images``, or ``pictures`` where a former version made that."""
    present, former = (home / name for name in IMAGES)
    return former if former.is_dir() else present


def _list_roots(home: Path, names: tuple[str, ...]) -> tuple[Path, ...]:
    """List folders, and what the links directly in them lead to: a user with a shell has put these there."""
    folders = [home.resolve() / name for name in names]
    links = [path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.is_symlink()]
    return tuple(path.resolve() for path in (*folders, *links))
