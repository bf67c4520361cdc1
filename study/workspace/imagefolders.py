"""Add an image set to a workspace from a zip, uploaded files or a folder; nothing half-written is left behind.

A zip comes from a stranger as far as this file knows: its names, sizes and counts are checked before anything is
unpacked, and what is unpacked is counted as it is written, whatever its headers say.
"""

from __future__ import annotations

import errno
import functools
import os
import shutil
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from core.errors import ForetellError
from core.types import Progress
from data.sets.images import EXTENSIONS
from study.workspace.disk import LEAST_FREE, free_bytes
from study.workspace.unreadable import remove_unreadable

MOST_FILES = 50_000
MOST_BYTES = 20 * 2**30
MOST_IMAGE_BYTES = 200 * 2**20
LONGEST_NAME = 150
"""Bytes of one file's or folder's name: file systems take 255, and a prefix may be added."""
DEEPEST = 10
CHUNK = 2**20
TEMPORARY = ".adding-"
ABANDONED_S = 24 * 3600.0
IGNORED = "__MACOSX"
"""A folder that macOS adds to zips, with a file of metadata for each image."""


@dataclass(frozen=True)
class Entry:
    """One file to add: its name with folders, its size in bytes as it is claimed, and how to read it."""

    name: str
    size: int
    open: Callable[[], IO[bytes]]


@dataclass(frozen=True)
class AddedSet:
    """A new image set: its folder, the number of images, and by name the files that were left out.

    ``others`` are no images by their ending, ``unreadable`` none by their content.
    """

    folder: Path
    images: int
    others: tuple[str, ...]
    unreadable: tuple[str, ...] = ()
    bytes: int = 0


def list_folder(path: Path) -> list[Entry]:
    """List the files below a folder of this machine; links are not followed.

    Raises
    ------
    ForetellError
        No such folder, or too many files.
    """
    root = path.expanduser()
    if not root.is_dir():
        raise ForetellError(f"{root} is not a folder on the machine that runs Foretell. Check the path.")
    entries: list[Entry] = []
    for here, below, names in os.walk(root):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for file in (Path(here) / name for name in sorted(names)):
            if file.is_symlink() or not file.is_file():
                continue
            entries.append(make_entry(file, file.relative_to(root).as_posix()))
            refuse_number(len(entries), str(root))
    return entries


def make_entry(file: Path, name: str) -> Entry:
    """Return a file of this machine as one to add, under a name with folders."""
    return Entry(name, file.stat().st_size, functools.partial(_open_file, file))


def _open_file(path: Path) -> IO[bytes]:
    return path.open("rb")


def refuse_number(files: int, what: str) -> None:
    """Raise `ForetellError` for more files than an image set takes."""
    if files > MOST_FILES:
        raise ForetellError(
            f"{what} has more than {MOST_FILES:,} files. Make several sets of it, or name the folder in a study file "
            "(set = 'folder')."
        )


def add_set(
    sets: Path,
    name: str,
    entries: Sequence[Entry],
    progress: Progress,
    most_bytes: int = MOST_BYTES,
    *,
    nested: bool = False,
) -> AddedSet:
    """Write the images of ``entries`` to a new folder of ``sets``, one folder per category.

    Parameters
    ----------
    sets
        The folder of image sets in the workspace.
    name
        Of the new set.
    entries
        Files as CATEGORY/IMAGE, maybe below further folders that all of them share; other files are left out.
    progress
        Called with the number of files written.
    most_bytes
        What all images may have together, as they are written.
    nested
        Accept a category whose images are all in folders below its own.

    Raises
    ------
    ForetellError
        A name that exists or cannot be used, no images or none that can be read, images outside a category or, unless
        ``nested``, only in folders below one, names that are unsafe or collide, too many or too large files, or too
        little space.
    """
    target = sets / check_name(name)
    _refuse_existing(target)
    refuse_number(len(entries), "The set")
    planned = plan(entries)
    if not nested:
        _refuse_nested(planned)
    _refuse_space(sets, min(sum(entry.size for entry, _ in planned), most_bytes + 1), most_bytes)
    with _temporary_folder(sets.parent) as folder:
        left = most_bytes
        for done, (entry, path) in enumerate(planned):
            progress(done, len(planned), "adding images")
            left -= _write(entry, folder / path, left, most_bytes)
        unreadable = remove_unreadable([(entry.name, folder / path) for entry, path in planned], folder)
        _refuse_existing(target)
        sets.mkdir(parents=True, exist_ok=True)
        folder.rename(target)
    images = {entry.name for entry, _ in planned}
    seen = [entry.name for entry in entries if not _is_hidden(split_name(entry.name))]
    others = tuple(name for name in seen if name not in images)
    return AddedSet(target, len(planned) - len(unreadable), others, unreadable, most_bytes - left)


def check_name(name: str) -> str:
    """Return the name of a set or a category, normalised, if it can be the name of a folder on every system.

    Raises
    ------
    ForetellError
        It cannot.
    """
    text = unicodedata.normalize("NFC", name).strip()
    if not text or text.startswith(".") or text.endswith(".") or any(c in '/\\:*?"<>|' or ord(c) < 32 for c in text):
        raise ForetellError(f"{name!r} cannot be the name of a folder. Use letters, digits, spaces, - and _.")
    if len(text.encode()) > LONGEST_NAME:
        raise ForetellError(f"The name {text[:20]}… is longer than {LONGEST_NAME} bytes. Choose a shorter one.")
    return text


def plan(entries: Sequence[Entry]) -> list[tuple[Entry, PurePosixPath]]:
    """Find the path CATEGORY/.../IMAGE of every image; what is no image is left out.

    Raises
    ------
    ForetellError
        An unsafe name anywhere, no images, an image outside a category, or two names that some systems take for one.
    """
    split = [(entry, split_name(entry.name)) for entry in entries]
    images = [(entry, parts) for entry, parts in split if _is_image(parts)]
    if not images:
        raise ForetellError(f"There are no images. They end in {' '.join(EXTENSIONS)}, in one folder per class.")
    while all(len(parts) > 2 for _, parts in images) and len({parts[0] for _, parts in images}) == 1:
        images = [(entry, parts[1:]) for entry, parts in images]
    loose = next((entry.name for entry, parts in images if len(parts) < 2), None)
    if loose is not None:
        raise ForetellError(f"{_short(loose)} is in no class folder. Put the images into one folder per class.")
    _refuse_collisions(images)
    return [(entry, PurePosixPath(*parts)) for entry, parts in images]


def _refuse_nested(planned: Sequence[tuple[Entry, PurePosixPath]]) -> None:
    """Refuse a category without images of its own and with several folders of images: these may be the classes."""
    folders: dict[str, dict[str, str]] = {}
    for entry, path in planned:
        whole = split_name(entry.name)
        category = "/".join(whole[: len(whole) - len(path.parts) + 1])
        folders.setdefault(category, {})[path.parts[1]] = "" if len(path.parts) == 2 else path.parts[1]
    named = {category: list(below) for category, below in folders.items() if all(below.values()) and len(below) > 1}
    if not named:
        return
    category = max(named, key=lambda one: len(named[one]))
    below = named[category]
    raise ForetellError(
        f"The folder {_short(category)} has no images of its own, but {len(below):,} folders of images "
        f"({', '.join(map(_short, below[:3]))}{', …' if len(below) > 3 else ''}). If these are the classes, add the "
        f"folder {_short(category)} alone. If {_short(category)} is one class, tick “Class folders have "
        "folders in them”."
    )


def split_name(name: str) -> tuple[str, ...]:
    """Split the name of a file into its folders, normalised.

    Raises
    ------
    ForetellError
        It is absolute, leads out of its folder, is too long or too deep, or has control characters.
    """
    unified = unicodedata.normalize("NFC", name.replace("\\", "/"))
    parts = tuple(part for part in unified.split("/") if part not in ("", "."))
    wrong = None
    if unified.startswith("/") or unified[1:2] == ":" or ".." in parts:
        wrong = "leads out of the set's folder"
    elif any(ord(c) < 32 or ord(c) == 127 for c in unified):
        wrong = "has control characters"
    elif len(parts) > DEEPEST:
        wrong = f"is more than {DEEPEST} folders deep"
    elif any(len(part.encode("utf-8", "replace")) > LONGEST_NAME for part in parts):
        wrong = f"is longer than {LONGEST_NAME} bytes"
    elif any("\ud800" <= c <= "\udfff" for c in unified):
        wrong = "is not valid text"
    if wrong:
        raise ForetellError(f"The name {_short(name)} {wrong}. Nothing was added; rename it and try again.")
    return parts


def _is_image(parts: tuple[str, ...]) -> bool:
    return bool(parts) and not _is_hidden(parts) and PurePosixPath(parts[-1]).suffix.lower() in EXTENSIONS


def _is_hidden(parts: tuple[str, ...]) -> bool:
    return any(part.startswith(".") or part == IGNORED for part in parts)


def _refuse_collisions(images: Sequence[tuple[Entry, tuple[str, ...]]]) -> None:
    """Refuse names that are the same but for upper and lower case: a disk of macOS or Windows would keep one."""
    seen: dict[str, tuple[str, ...]] = {}
    for _, parts in images:
        for depth in range(1, len(parts) + 1):
            is_file, part = depth == len(parts), parts[:depth]
            key = "/".join(part).casefold()
            before = seen.setdefault(key, part)
            if before != part or (is_file and before is not part):
                raise ForetellError(
                    f"{_short('/'.join(before))} and {_short('/'.join(part))} have the same name, or differ only in "
                    "upper and lower case. Nothing was added; rename one of them."
                )


def _write(entry: Entry, path: Path, left: int, most_bytes: int) -> int:
    """Write a file and return its bytes, counted as they come."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with entry.open() as source, path.open("xb") as target:
        while chunk := source.read(CHUNK):
            written += len(chunk)
            if written > MOST_IMAGE_BYTES:
                raise ForetellError(
                    f"{_short(entry.name)} has more than {format_bytes(MOST_IMAGE_BYTES)} unpacked. Nothing was added."
                )
            if written > left:
                raise ForetellError(
                    f"The images have more than {format_bytes(most_bytes)} unpacked, the most that is accepted here. "
                    "Nothing was added."
                )
            target.write(chunk)
    if free_bytes(path.parent) < LEAST_FREE:
        raise OSError(errno.ENOSPC, "")
    return written


def _refuse_existing(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise ForetellError(f"There is an image set {target.name} already. Choose another name, or remove that one.")


def _refuse_space(sets: Path, size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise ForetellError(f"The images have more than {format_bytes(most_bytes)}. Make several smaller sets.")
    free = free_bytes(sets.parent) - LEAST_FREE
    if size > free:
        raise ForetellError(
            f"The images need {format_bytes(size)}, and the disk of the workspace has {format_bytes(max(free, 0))} to "
            f"spare ({format_bytes(LEAST_FREE)} are kept for responses). Free some space first."
        )


@contextmanager
def _temporary_folder(home: Path) -> Iterator[Path]:
    """Make a folder on the disk of the workspace, removed at the end unless it was renamed."""
    home.mkdir(parents=True, exist_ok=True)
    for old in home.glob(f"{TEMPORARY}*"):  # of a process that was killed
        if time.time() - old.stat().st_mtime > ABANDONED_S:
            shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=home))
    try:
        yield folder
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise ForetellError(f"The images cannot be written or read ({error.strerror or error}).") from error
        raise ForetellError(
            f"The disk of the workspace is full: {format_bytes(LEAST_FREE)} are kept for responses. Nothing was added."
        ) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def format_bytes(size: float) -> str:
    """Format a number of bytes: ``"97.8 MB"``."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} GB"


def _short(name: str) -> str:
    """Shorten a name of a stranger's for a sentence, with nothing in it that cannot be printed."""
    text = name.encode("utf-8", "replace").decode()
    text = "".join(c if c.isprintable() else "?" for c in text)
    return repr(text if len(text) <= 60 else f"{text[:40]}…{text[-15:]}")
