"""Where a user's own things live: bundles, databases, downloads. Never inside the code."""

from __future__ import annotations

import os
from pathlib import Path

from core.errors import ForetellError
from study.bundle import MANIFEST, Bundle

VARIABLE = "FORETELL_HOME"
ROOT = Path(__file__).resolve().parents[1]


def home() -> Path:
    """The workspace folder: ``FORETELL_HOME``, or ``workspace`` under the repository root. Made if missing."""
    named = os.environ.get(VARIABLE)
    folder = Path(named).expanduser() if named else ROOT / "workspace"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def bundles(home: Path) -> list[Path]:
    """Folders of the bundles built into a workspace, the newest first."""
    manifests = list((home / "bundles").glob(f"*/{MANIFEST}"))
    return [path.parent for path in sorted(manifests, key=lambda path: (-path.stat().st_mtime_ns, path))]


def bundle_named(home: Path, name: str) -> Bundle:
    """A bundle by its study's name (the newest of that name), its folder's name, or its path.

    Raises
    ------
    ForetellError
        Nothing of that name is built, or what is built is damaged.
    """
    if (Path(name) / MANIFEST).is_file():
        return Bundle(Path(name).resolve())
    built = bundles(home)
    for folder in built:
        if name in (folder.name, study_name(folder)):
            return Bundle(folder)
    known = ", ".join(dict.fromkeys(study_name(folder) for folder in built)) or "none"
    raise ForetellError(f"No study {name!r} is built. Built: {known}. Build it first.")


def study_name(folder: Path) -> str:
    """The study's name in the name of a bundle's folder, ``<study>-<key>``."""
    return folder.name.rpartition("-")[0] or folder.name


def study_files(home: Path) -> list[Path]:
    """Study files: those that come with the project, and the workspace's own in ``studies``."""
    return [*sorted((ROOT / "data" / "studies").glob("*.toml")), *sorted((home / "studies").glob("*.toml"))]
