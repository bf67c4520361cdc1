"""Image files as a user names them: files, folders and patterns."""

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
from data.sets.images import EXTENSIONS, read_image


def find_images(given: Sequence[Path]) -> dict[str, Path]:
    """Find every image that files, folders and patterns (``*``, ``?``, ``**``) name, once each, by a unique name.

    A file is named by its stem, an image of a folder or pattern by its path from there, without the ending. Where
    two would have the same name, all are named by their paths from their common folder, and those still the same,
    with their endings. Drawings of heatmaps made here are skipped, so heatmaps may be in the same folder.

    Raises
    ------
    ForetellError
        A missing file (with the nearest name), or a folder or pattern without an image.
    """
    names: dict[Path, str] = {}
    for path in given:
        for file, name in _expand_path(path.expanduser()):
            names.setdefault(file.absolute(), name)
    if len(set(names.values())) < len(names):
        shared = Path(os.path.commonpath([file.parent for file in names]))
        names = {file: _name_file(file, shared) for file in names}
    counts = Counter(names.values())
    return {name + (file.suffix if counts[name] > 1 else ""): file for file, name in names.items()}


def _expand_path(path: Path) -> list[tuple[Path, str]]:
    """Expand one path into its images, each with its name."""
    if path.is_file():
        return [(path, path.stem)]
    if path.is_dir():
        root, pattern = path, "**/*"
    elif glob.has_magic(str(path)):
        root, pattern = _split(path)
    else:
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*")], n=1)
        raise ForetellError(f"There is no image {path}.{f' Did you mean {near[0]}?' if near else ''}")
    images = _list_images(root.glob(pattern))
    if not images:
        raise ForetellError(f"There is no image in {path}: file names must end in {', '.join(EXTENSIONS)}.")
    return [(file, _name_file(file, root)) for file in images]


def _name_file(file: Path, root: Path) -> str:
    return file.relative_to(root).with_suffix("").as_posix()


def _split(path: Path) -> tuple[Path, str]:
    """Split a pattern into the folder that it starts from and its parts from the first wildcard on."""
    first = next(k for k, part in enumerate(path.parts) if glob.has_magic(part))
    return Path(*path.parts[:first]), str(Path(*path.parts[first:]))


def _list_images(files: Iterable[Path]) -> list[Path]:
    known = (file for file in files if file.suffix.lower() in EXTENSIONS and not file.name.startswith("."))
    return sorted(file for file in known if file.is_file() and not _is_heatmap(file))


def _is_heatmap(file: Path) -> bool:
    return all(file.with_suffix(ending).is_file() for ending in (".npy", ".json"))


def open_image(path: Path) -> Image.Image:
    """Open an image file as RGB, upright; raise `ForetellError` if it cannot be read."""
    try:
        return read_image(path)
    except DataError as error:
        raise ForetellError(f"{path} cannot be read as an image: {error}. Give a PNG, JPEG or WebP file.") from None
