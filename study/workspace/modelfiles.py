"""The models of a workspace: the lines of ``models/models.txt``, and the files next to it."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from core.errors import ForetellError
from core.sources.local import LIST, list_folder_models
from core.sources.spec import EXPORTED
from core.text import read_text
from study.workspace.disk import LEAST_FREE, free_bytes
from study.workspace.files import write_whole
from study.workspace.imagefolders import TEMPORARY, Entry, format_bytes, split_name

ENDINGS = (".py", *EXPORTED)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,80}")


def read_lines(folder: Path) -> list[str]:
    """Return the models that the list names, without its comments."""
    path = folder / LIST
    lines = read_text(path).splitlines() if path.is_file() else []
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
        before = read_text(path) if path.is_file() else ""
        write_whole(path, f"{before}{'' if not before or before.endswith(chr(10)) else chr(10)}{text}\n".encode())


def remove_line(folder: Path, line: str) -> None:
    """Remove a model from the list; comments and the order of the others stay."""
    path = folder / LIST
    if path.is_file():
        lines = read_text(path).splitlines(keepends=True)
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
    _refuse_space(folder, len(content))
    write_whole(path, content)
    return path


def add_network(folder: Path, entries: Sequence[Entry], title: str = "") -> str:
    """Write the files of one network into a folder of their own; return the network as Explore names it.

    Parameters
    ----------
    folder
        The workspace's folder of models.
    entries
        The file of the network with those that it reads; nothing is executed.
    title
        Name of the new folder; by default that of the network's file.

    Raises
    ------
    ForetellError
        No network among the files or several, a name that exists or cannot be used, or too little space.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _refuse_space(folder, sum(entry.size for entry in entries))
    place = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=folder.parent))
    try:
        for entry in entries:
            path = place.joinpath(*split_name(entry.name))
            path.parent.mkdir(parents=True, exist_ok=True)
            with entry.open() as source, path.open("xb") as written:
                shutil.copyfileobj(source, written)
        models = list_folder_models(place, "")
        if len(models) != 1:
            why = f"Several files are networks ({', '.join(models)})" if models else "None of the files is a network"
            raise ForetellError(
                f"{why.replace('/', '')}. Add one Python file with build(), or one exported program, and the files "
                "that it reads."
            )
        name = title or PurePosixPath(models[0]).stem
        target = folder / name
        if not _NAME.fullmatch(name):
            raise ForetellError(f"{name!r} cannot be the name of a network. Use letters, digits, - and _.")
        if target.exists():
            raise ForetellError(f"There is a network {name} in {folder} already. Rename the new one, or remove that.")
        place.rename(target)
    except FileExistsError as error:
        raise ForetellError(f"Two files have the name {Path(str(error.filename)).name}. Rename one of them.") from None
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return list_folder_models(target, f"{folder.name}/{name}")[0]


def _refuse_space(folder: Path, size: int) -> None:
    if size > free_bytes(folder) - LEAST_FREE:
        raise ForetellError(f"The disk of the workspace has no space for {format_bytes(size)}. Free some first.")


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


def find_files(model: str) -> str:
    """Return the name of the file or the folder of a model of the workspace, within its folder of models."""
    return PurePosixPath(model.partition("/")[2]).parts[0]


def remove_file(folder: Path, name: str) -> None:
    """Remove a file of the folder, or a folder in it with all its files.

    Raises
    ------
    ForetellError
        It is not in the folder, or cannot be removed.
    """
    path = folder / name
    if path.parent != folder or path.name != name or name in ("", ".", "..") or not path.exists():
        raise ForetellError(f"There is no file {name!r} in {folder}.")
    try:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    except OSError as error:
        raise ForetellError(f"{path} cannot be removed ({error.strerror}). Check its rights.") from error


def _endings() -> str:
    return ", ".join(ENDINGS)
