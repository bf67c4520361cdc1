"""The image sets of a workspace: folders SET/CATEGORY/IMAGE, whose categories can be renamed or left out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from core.errors import ForetellError
from data.sets.images import EXTENSIONS
from study.workspace.imagefolders import check_name

LEFT_OUT = "."
"""Begins the name of a category that is left out: `data.sets.folder` does not read hidden folders."""


def count_images(folder: Path) -> dict[str, int]:
    """Count the images of each category by the names of the files, without opening them."""
    counts = {}
    for category in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")):
        names = [name for _, _, files in os.walk(category) for name in files if not name.startswith(".")]
        counts[category.name] = sum(Path(name).suffix.lower() in EXTENSIONS for name in names)
    return counts


def list_left_out(folder: Path) -> list[str]:
    """List the categories that were left out."""
    return sorted(path.name.removeprefix(LEFT_OUT) for path in folder.glob(".*") if path.is_dir())


def rename_categories(folder: Path, names: Mapping[str, str | None]) -> None:
    """Rename categories of a set, or leave them out (None); two that get one name are joined.

    Raises
    ------
    ForetellError
        A category that is not there, a name that no folder can have, every category left out, or a folder that cannot
        be renamed.
    """
    there = set(count_images(folder))
    for old in names:
        if old not in there:
            raise ForetellError(f"The set {folder.name} has no category {old!r} any more. Reload the page.")
    if all(names.get(category, category) is None for category in there):
        raise ForetellError(f"Every category of {folder.name} would be left out. Keep at least one.")
    targets = {old: f"{LEFT_OUT}{old}" if new is None else check_name(new) for old, new in names.items()}
    try:
        for old, new in targets.items():
            if new != old:
                _move(folder / old, folder / new)
    except OSError as error:
        raise ForetellError(f"A folder of {folder} cannot be renamed ({error.strerror}). Check its rights.") from error


def _move(old: Path, new: Path) -> None:
    """Rename a folder; into one that exists, its files go with the folder's old name before their own."""
    if not new.exists():
        old.rename(new)
        return
    for path in sorted(old.iterdir()):
        target, number = new / path.name, 0
        while target.exists():
            number += 1
            target = new / f"{old.name.lstrip('.')} {number} {path.name}"
        path.rename(target)
    old.rmdir()


def remove_set(folder: Path) -> None:
    """Remove an image set and all its images.

    Raises
    ------
    ForetellError
        It cannot be removed.
    """
    try:
        folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)
    except OSError as error:
        raise ForetellError(f"{folder} cannot be removed ({error.strerror}). Check its rights.") from error
