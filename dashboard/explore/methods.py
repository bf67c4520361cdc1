"""The methods that the page offers: registered ones, and those that the workspace's owner put into its folder."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from core.attribution import METHODS
from core.attribution.method import HeatmapMethod
from core.attribution.outside.folders import PREFIX
from core.attribution.outside.functions import OWN, explains_itself
from core.attribution.outside.opening import open_method
from core.errors import ForetellError
from core.names import format_name
from core.network.classifier import Classifier
from study.workspace.workspace import home

FOLDER = "methods"
"""Folder of the workspace: Python files with a function ``explain``, and folders of finished heatmaps."""
FUNCTION = "explain"
CODE = re.compile("|".join(rf"\b{name}\b" for name in METHODS if format_name(name) != name.capitalize()))
"""A method's name in a sentence of the engine; not one such as "gradient", which may be the word."""
Stamp = tuple[tuple[str, int, int], ...]


def list_methods(classifier: Classifier) -> list[str]:
    """List the methods for a classifier; nothing of the workspace is opened or executed."""
    entries = sorted((home() / FOLDER).glob("[!.]*"))
    files = [f"{path.name}:{FUNCTION}" for path in entries if path.suffix == ".py"]
    folders = [f"{PREFIX}{path.name}" for path in entries if path.is_dir() and path.name != "__pycache__"]
    return [*METHODS, *files, *folders, *([OWN] if _explains_itself(classifier) else [])]


def open_offered(name: str, classifier: Classifier) -> HeatmapMethod:
    """Open a method of `list_methods`, and no other: a link names it, and a file of it is executed.

    Raises
    ------
    ForetellError
        A name that is not offered, or a file that fails.
    """
    if name not in list_methods(classifier):
        raise ForetellError(METHODS.unknown(name))
    return _open(name, home() / FOLDER, _stamp(name))


def name_methods(text: str) -> str:
    """Replace the codes of methods in a sentence of the engine by their names on the page."""
    return CODE.sub(lambda code: format_name(code[0]), text)


@lru_cache(maxsize=32)
def _open(name: str, base: Path, stamp: Stamp) -> HeatmapMethod:  # noqa: ARG001 - a changed file is opened again
    return open_method(name, base)


def _stamp(name: str) -> Stamp:
    """Return names, sizes and times of the files of a method; empty for those that are no files."""
    if ":" not in name:
        return ()
    path = home() / FOLDER / (name.removeprefix(PREFIX) if name.startswith(PREFIX) else name.rpartition(":")[0])
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)


@lru_cache(maxsize=16)
def _explains_itself(classifier: Classifier) -> bool:
    """Tell whether the network has an explanation of its own: asked once, because a running job may hold it."""
    with classifier.exclusive() as module:
        return explains_itself(module)
