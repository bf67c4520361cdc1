"""A user's own images: one folder per category, named in plain words or by WordNet id."""

from __future__ import annotations

import codecs
import difflib
import hashlib
import os
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np
from PIL import Image

from data.errors import DataError
from data.sets.images import EXTENSIONS, read_image
from data.sets.wnids import WNID, imagenet_names
from data.types import ImageSet, SkippedImage


@dataclass(frozen=True)
class _File:
    """One candidate: its id (path below the root with ``/``), category and, once read, its hash or an error."""

    id: str
    path: Path
    label: int
    sha256: str = ""
    reason: str = ""


def load(
    *,
    path: str | Path,
    images: str | Path | None = None,
    name: str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    decode: bool = True,
) -> ImageSet:
    """Read a tree ``path/<category>/.../picture``; every file is decoded once as a check.

    Order and ids do not depend on the platform. Hidden files and folders are ignored; everything else that is not a
    readable image is listed in ``skipped`` with its reason. Where all folders are WordNet ids, ``wnids`` holds them
    and the categories have plain names where `data.sets.wnids` knows them.

    Parameters
    ----------
    path
        The folder that holds the category folders.
    images
        A text file of the ids to use, one a line (an id is the path below ``path``); None uses every image.
    name
        Name of the set; None is ``folder/<name of the folder>``.
    progress
        ``progress(done, total, what)``, called for each file.
    decode
        False: files are hashed only, and one that cannot be read is an error when it is opened.

    Raises
    ------
    DataError
        No such folder, no category folders, no images at all, a category without a readable image, or a listed id
        that is not there.
    """
    root = Path(path).expanduser()
    folders = _category_folders(root)
    listed = None if images is None else _read_ids(Path(images).expanduser())
    if listed is not None:
        folders = [folder for folder in folders if unicodedata.normalize("NFC", folder.name) in _categories_of(listed)]
    files = [_File(i, p, k) for k, folder in enumerate(folders) for i, p in _files(root, folder)]
    if listed is not None:
        files = _select(files, listed, root)
    read = _read(sorted(files, key=lambda file: file.id), progress or (lambda *_: None), decode)
    kept = [file for file in read if not file.reason]
    skipped = tuple(SkippedImage(file.id, file.reason) for file in read if file.reason)
    names = [unicodedata.normalize("NFC", folder.name) for folder in folders]
    _refuse_empty(root, names, {file.label for file in kept}, skipped)
    categories, wnids = _name_categories(names)
    return ImageSet(
        name=name or f"folder/{root.resolve().name}",
        categories=categories,
        labels=np.array([file.label for file in kept], dtype=np.int64),
        ids=tuple(file.id for file in kept),
        open=lambda i: _open(kept[i].path),
        digest=_digest(names, kept),
        wnids=wnids,
        skipped=skipped,
    )


def _read_ids(file: Path) -> dict[str, None]:
    """Read the ids that a file lists, each once."""
    try:
        content = file.read_bytes()
        encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
        lines = content.decode(encoding).splitlines()
    except OSError as error:
        raise DataError(
            f"The list of images {file} cannot be read: {error}. Give a text file with one id a line."
        ) from None
    except UnicodeDecodeError:
        raise DataError(f"The list of images {file} is not text in UTF-8. Save it as UTF-8.") from None
    ids = dict.fromkeys(unicodedata.normalize("NFC", line.strip()) for line in lines if line.strip())
    if not ids:
        raise DataError(f"The list of images {file} is empty: give one id a line, such as cat/one.jpg.")
    return ids


def _categories_of(ids: Iterable[str]) -> set[str]:
    return {name.partition("/")[0] for name in ids}


def _select(files: list[_File], listed: Mapping[str, None], root: Path) -> list[_File]:
    """Keep the listed files."""
    missing = listed.keys() - {file.id for file in files}
    if missing:
        raise DataError(
            f"{root} does not hold {len(missing)} of the {len(listed)} listed images, such as {min(missing)}: correct "
            "the list, or put the images back."
        )
    return [file for file in files if file.id in listed]


def _category_folders(root: Path) -> list[Path]:
    if not root.exists():
        raise DataError(describe_missing(root))
    if not root.is_dir():
        raise DataError(f"{root} is a file: give the folder that holds one folder per category.")
    folders = [entry for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    if not folders:
        raise DataError(
            f"{root} has no category folders: put the images into one folder per category, named like the category."
        )
    return sorted(folders, key=lambda folder: unicodedata.normalize("NFC", folder.name))


def describe_missing(root: Path) -> str:
    """Say that there is no such folder, and which there are next to it."""
    return f"No folder {root}.{_siblings(root)}"


def _siblings(root: Path) -> str:
    parent = root.absolute().parent
    if not parent.is_dir():
        return f" Its parent {parent} is missing as well."
    names = [entry.name for entry in parent.iterdir() if entry.is_dir()]
    near = difflib.get_close_matches(root.name, names, n=3, cutoff=0.5)
    return (
        f" Did you mean {' or '.join(str(root.with_name(n)) for n in near)}?"
        if near
        else f" {parent} has no such folder."
    )


def _files(root: Path, folder: Path) -> list[tuple[str, Path]]:
    """List (id, path) of every file below a category's folder, hidden ones left out."""
    files = []
    for here, below, names in os.walk(folder, followlinks=True):
        below[:] = [name for name in below if not name.startswith(".")]
        paths = [Path(here) / name for name in names if not name.startswith(".")]
        files += [(unicodedata.normalize("NFC", path.relative_to(root).as_posix()), path) for path in paths]
    return files


def _read(files: list[_File], progress: Callable[[int, int, str], None], decode: bool) -> list[_File]:
    """Decode and hash every file, on all cores (both leave Python's lock)."""
    done = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for file in pool.map(_examine_file, files, repeat(decode)):
            done.append(file)
            progress(len(done), len(files), "Reading images")
    return done


def _examine_file(file: _File, decode: bool) -> _File:
    if file.path.suffix.lower() not in EXTENSIONS:
        reason = f"extension {file.path.suffix or '(none)'} is not one of {' '.join(EXTENSIONS)}"
        return _File(file.id, file.path, file.label, reason=reason)
    try:
        if decode:
            read_image(file.path)
        digest = hashlib.sha256(file.path.read_bytes()).hexdigest()
    except (DataError, OSError) as error:
        return _File(file.id, file.path, file.label, reason=str(error))
    return _File(file.id, file.path, file.label, sha256=digest)


def _refuse_empty(root: Path, names: list[str], filled: set[int], skipped: tuple[SkippedImage, ...]) -> None:
    empty = [name for label, name in enumerate(names) if label not in filled]
    if not empty:
        return
    if not filled and not skipped:
        raise DataError(f"{root} holds no images: its category folders need files ending in {' '.join(EXTENSIONS)}.")
    listed = ", ".join(repr(name) for name in empty[:5]) + (f" and {len(empty) - 5} more" if len(empty) > 5 else "")
    why = next((f" ({skip.id}: {skip.reason})" for skip in skipped if skip.id.split("/")[0] in empty), "")
    raise DataError(f"No readable image of {listed} in {root}{why}: add images, or remove the folder.")


def _name_categories(names: list[str]) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Name the categories and, for a tree of WordNet ids, the ids."""
    if not all(WNID.fullmatch(name) for name in names):
        return tuple(names), None
    return tuple(imagenet_names().get(wnid, wnid) for wnid in names), tuple(names)


def _open(path: Path) -> Image.Image:
    try:
        return read_image(path)
    except (DataError, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}. Repair or replace it, and load the set again.") from None


def _digest(names: list[str], kept: list[_File]) -> str:
    """Hash (SHA-256) category folders, ids, labels and file contents."""
    total = hashlib.sha256("\n".join(names).encode())
    for file in kept:
        total.update(f"\n{file.id}\t{file.label}\t{file.sha256}".encode())
    return total.hexdigest()
