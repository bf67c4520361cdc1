"""The study files of a workspace in a backup, each with the list of the values that accounts have typed into it.

A study file without its list would be trusted as if it had been written at the machine: it could run an editor's code.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from core.errors import ForetellError
from study.plan.studyfiles import ARCHIVE, folder_of
from study.plan.typed import list_of


def save_study_files(home: Path, folder: Path) -> list[str]:
    """Copy the study files of a workspace, archived ones too, to a folder; return what could not be copied.

    An account may change a study file meanwhile. A list is written before its file, and moved before it: copied before
    and after the file, it lacks no value of it.
    """
    faults = []
    for path in _list_files(folder_of(home)):
        copy = folder / path.relative_to(folder_of(home))
        copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            for source in (list_of(path), path, list_of(path)):
                with suppress(FileNotFoundError):
                    shutil.copyfile(source, copy.with_name(source.name))
        except OSError as error:
            faults.append(f"{error.filename} cannot be copied ({error.strerror}). Make it readable, and back up again.")
            copy.unlink(missing_ok=True)
    return faults


def load_study_files(folder: Path, home: Path) -> None:
    """Copy saved study files and their lists into a workspace."""
    for source, target in _pair_files(folder, home):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def refuse_other_study_files(folder: Path, home: Path) -> None:
    """Refuse saved study files that would replace others in a workspace.

    Raises
    ------
    ForetellError
        A file of the same name has another content.
    """
    for source, target in _pair_files(folder, home):
        if target.exists() and target.read_bytes() != source.read_bytes():
            raise ForetellError(
                f"{target} already exists, and the backup has another one. Move it away, or restore into an empty "
                "workspace (FORETELL_HOME)."
            )


def _pair_files(folder: Path, home: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each file of a backup and its place; a list before its study file, which is never there without it."""
    for path in _list_files(folder):
        for source in (list_of(path), path):
            if source.is_file() and not source.is_symlink():  # a link in a backup could name any file of this machine
                yield source, folder_of(home) / source.relative_to(folder)


def _list_files(folder: Path) -> list[Path]:
    return [path for place in (folder, folder / ARCHIVE) for path in sorted(place.glob("*.toml")) if path.is_file()]
