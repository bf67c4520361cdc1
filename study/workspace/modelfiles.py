"""The models of a workspace: the lines of ``models/models.txt``, and the files next to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from core.errors import ForetellError
from core.sources.local import LIST
from core.sources.spec import EXPORTED
from study.workspace.disk import LEAST_FREE, free_bytes
from study.workspace.files import write_whole
from study.workspace.imagefolders import format_bytes

ENDINGS = (".py", *EXPORTED)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,80}")


def read_lines(folder: Path) -> list[str]:
    """Return the models that the list names, without its comments."""
    path = folder / LIST
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def add_line(folder: Path, line: str) -> None:
    """Add a model to the list; one that is there already stays there once.

    Raises
    ------
    ForetellError
        A line that would be read as several, or as a comment.
    """
    text = line.strip()
    if not text or text.startswith("#") or len(text.splitlines()) != 1:
        raise ForetellError(f"{line!r} names no model. Give one name in one line.")
    if text not in read_lines(folder):
        path = folder / LIST
        before = path.read_text(encoding="utf-8") if path.is_file() else ""
        write_whole(path, f"{before}{'' if not before or before.endswith(chr(10)) else chr(10)}{text}\n".encode())


def remove_line(folder: Path, line: str) -> None:
    """Remove a model from the list; comments and the order of the others stay."""
    path = folder / LIST
    if path.is_file():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        write_whole(path, "".join(one for one in lines if one.strip() != line).encode())


def add_file(folder: Path, name: str, content: bytes) -> Path:
    """Write a Python file, an exported program or a list of class names; nothing is executed or overwritten.

    Raises
    ------
    ForetellError
        A name that exists or is no plain file name of these kinds, or too little space.
    """
    path = folder / name
    if not _NAME.fullmatch(name) or path.suffix.lower() not in (*ENDINGS, ".txt") or name == LIST:
        raise ForetellError(f"{name!r} cannot be added. Name it with letters, digits, - and _, ending in {_endings()}.")
    if path.exists() or path.is_symlink():
        raise ForetellError(f"There is a file {name} in {folder} already. Rename the new one, or remove the old one.")
    folder.mkdir(parents=True, exist_ok=True)
    if len(content) > free_bytes(folder) - LEAST_FREE:
        raise ForetellError(
            f"The disk of the workspace has no space for {format_bytes(len(content))}. Free some first."
        )
    write_whole(path, content)
    return path


def write_names(folder: Path, name: str, names: Sequence[str]) -> Path:
    """Write the class names of a CLIP network, one per line.

    Raises
    ------
    ForetellError
        Fewer than two names, a name twice, or what `add_file` refuses.
    """
    kept = [one.strip() for one in names if one.strip()]
    if len(kept) < 2 or len(set(kept)) < len(kept):
        raise ForetellError("Give two or more class names, one per line, none of them twice.")
    return add_file(folder, f"{name}.txt", ("\n".join(kept) + "\n").encode())


def remove_file(folder: Path, name: str) -> None:
    """Remove a file of the folder.

    Raises
    ------
    ForetellError
        It is not a file of the folder, or cannot be removed.
    """
    path = folder / name
    if path.parent != folder or path.name != name or not path.is_file():
        raise ForetellError(f"There is no file {name!r} in {folder}.")
    try:
        path.unlink()
    except OSError as error:
        raise ForetellError(f"{path} cannot be removed ({error.strerror}). Check its rights.") from error


def _endings() -> str:
    return ", ".join(ENDINGS)
