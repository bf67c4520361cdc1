"""Picture files as a user names them: files, folders and patterns."""

from __future__ import annotations

import difflib
import glob
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from PIL import Image

from core.errors import ForetellError
from data.errors import DataError
from data.sets.pictures import EXTENSIONS, read_image


def find_images(given: Sequence[Path]) -> dict[str, Path]:
    """Every image that files, folders and patterns (``*``, ``?``, ``**``) name, once each, by a name of its own.

    A file is called by its stem, an image of a folder or pattern by its path from there, without the ending. Where
    two would be called the same, all are called by their paths from the folder they share, and those that still are,
    with their endings. Pictures of maps made here are left out, so that maps may lie among the images.

    Raises
    ------
    ForetellError
        A file that is not there (with the nearest), or a folder or pattern without an image.
    """
    found: dict[Path, str] = {}
    for path in given:
        for file, name in _expand_path(path.expanduser()):
            found.setdefault(file.absolute(), name)
    if len(set(found.values())) < len(found):
        shared = Path(os.path.commonpath([file.parent for file in found]))
        found = {file: _name_file(file, shared) for file in found}
    counts = Counter(found.values())
    return {name + (file.suffix if counts[name] > 1 else ""): file for file, name in found.items()}


def _expand_path(path: Path) -> list[tuple[Path, str]]:
    """The images one path stands for, each with its name."""
    if path.is_file():
        return [(path, path.stem)]
    if path.is_dir():
        root, pattern = path, "**/*"
    elif glob.has_magic(str(path)):
        root, pattern = _split(path)
    else:
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*")], n=1)
        raise ForetellError(f"There is no image {path}.{f' Did you mean {near[0]}?' if near else ''}")
    pictures = _pictures(root.glob(pattern))
    if not pictures:
        raise ForetellError(f"There is no image in {path}: file names must end in {', '.join(EXTENSIONS)}.")
    return [(file, _name_file(file, root)) for file in pictures]


def _name_file(file: Path, root: Path) -> str:
    return file.relative_to(root).with_suffix("").as_posix()


def _split(path: Path) -> tuple[Path, str]:
    """The folder a pattern starts from, and the pattern from there: its parts from the first with a wildcard on."""
    first = next(k for k, part in enumerate(path.parts) if glob.has_magic(part))
    return Path(*path.parts[:first]), str(Path(*path.parts[first:]))


def _pictures(files: Iterable[Path]) -> list[Path]:
    known = (file for file in files if file.suffix.lower() in EXTENSIONS and not file.name.startswith("."))
    return sorted(file for file in known if file.is_file() and not _is_a_map(file))


def _is_a_map(file: Path) -> bool:
    return all(file.with_suffix(ending).is_file() for ending in (".npy", ".json"))


def open_image(path: Path) -> Image.Image:
    """An image file as RGB, upright, or the sentence that says what is wrong with it."""
    try:
        return read_image(path)
    except DataError as error:
        raise ForetellError(f"{path} cannot be read as an image: {error}. Give a PNG, JPEG or WebP file.") from None
