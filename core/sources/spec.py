"""A model as a command or a study file names it, and what several sources need to load it."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import ForetellError
from core.files import FileLimits, find_file, is_path
from core.registry import Registry
from core.text import read_lines
from core.userfiles import split_python

FORMS = (
    "scenes, scenes:NAME, torchvision:NAME, timm:NAME, hf:NAME, clip:NAME?names=FILE, an exported program "
    "(FILE.pt2 or FILE.pt), or FILE.py:build"
)
"""How a model may be named, for messages."""
EXPORTED = (".pt2", ".pt", ".ts", ".torchscript")
"""Endings of exported programs and of TorchScript."""
SHOWN = 6
"""Most names that a message lists."""
NEAR = 0.7
"""How similar a word must be to the name of a source to be taken for it (`difflib`)."""
_SETTINGS = re.compile(r"(.*?)\?(\w+=.*)", re.DOTALL)


@dataclass(frozen=True)
class ModelSpec:
    """The parts of ``SOURCE:NAME?setting=value&setting=value``.

    Attributes
    ----------
    source
        A name of `core.sources.SOURCES`.
    name
        What follows the source: the name of a model, a file or a folder.
    settings
        The values of each setting, in the order in which they were given.
    base
        The folder from which relative paths start.
    title
        Its name for display; empty for the name itself.
    whole
        Resize the whole image to the network's input, whatever its aspect, instead of cropping it.
    limits
        Of the account that named the model; None for a user of this machine.
    """

    source: str
    name: str
    settings: Mapping[str, tuple[str, ...]]
    base: Path
    title: str = ""
    whole: bool = False
    limits: FileLimits | None = None

    @property
    def text(self) -> str:
        """Return the specification without its settings."""
        return f"{self.source}:{self.name}"

    def find_path(self, name: str, *, runs: bool = False) -> Path:
        """Return the path that ``name`` means, seen from the base folder; ``runs`` for a network, which is code."""
        return find_file(self.base, name, self.limits, runs=runs)

    @property
    def folder(self) -> Path | None:
        """Return the local folder that the name means, if there is one."""
        if not self.name or (self.limits is not None and not is_path(self.name)):
            return None  # a name of the library's: whether there is a folder of that name is not for everyone
        path = self.find_path(self.name, runs=True)
        return path if path.is_dir() else None

    @property
    def display(self) -> str:
        """Return the name for display: of a folder, its last part."""
        return self.title or (f"{self.source}:{self.folder.resolve().name}" if self.folder else self.text)

    def check_settings(self, *accepted: str) -> None:
        """Raise `ForetellError` for settings that the source does not take."""
        for name in self.settings:
            if name not in accepted:
                offered = f"It takes: {', '.join(accepted)}." if accepted else "It takes none."
                raise ForetellError(f"{self.text} does not take the setting {name!r}. {offered}")

    def refuse_whole(self) -> None:
        """Raise `ForetellError` where the whole image should be resized and only the model's author can do so."""
        if self.whole:
            raise ForetellError(
                f'resize = "whole" is for torchvision, timm and CLIP networks; {Path(self.name).name} has transforms '
                "of its own: resize there."
            )

    def read_names(self) -> list[str] | None:
        """Return the class names of the setting ``names``, a text file with one name per line; None without it."""
        files = self.settings.get("names")
        if files is None:
            return None
        path = self.find_path(files[-1])
        names = read_lines(path, "one class name per line")
        if len(names) < 2:
            raise ForetellError(f"{path} has {len(names)} class name. Give two or more, one per line.")
        return names


def parse_spec(
    text: str,
    sources: Registry,
    base: Path,
    *,
    title: str = "",
    whole: bool = False,
    limits: FileLimits | None = None,
) -> ModelSpec:
    """Parse a specification; one without a source means a Python file, an exported program or torchvision.

    Raises
    ------
    ForetellError
        An unknown source, or settings that are not ``name=value``.
    """
    match = _SETTINGS.fullmatch(text)
    name, given = match.groups() if match else (text, "")
    settings: dict[str, tuple[str, ...]] = {}
    for pair in given.split("&") if given else ():
        key, equals, value = pair.partition("=")
        if not equals or not value:
            raise ForetellError(f"{pair!r} in {text!r} is not of the form name=value. Separate settings with &.")
        settings[key] = (*settings.get(key, ()), value)
    source, rest = _find_source(name.strip(), sources)
    if not rest:
        raise ForetellError(f"{text!r} names no model. Give {FORMS}.")
    return ModelSpec(source, rest, settings, base, title, whole, limits)


def _find_source(name: str, sources: Registry) -> tuple[str, str]:
    head, colon, rest = name.partition(":")
    if colon and head in sources:
        return head, rest
    if split_python(name) is not None:
        return "file", name
    if Path(name).suffix.lower() in EXPORTED:
        return "exported", name
    if colon and difflib.get_close_matches(head, sources, n=1, cutoff=NEAR):
        raise ForetellError(sources.unknown(head))
    return "torchvision", name


def suggest_names(name: str, known: Sequence[str], otherwise: str) -> str:
    """Return the nearest of the known names as a question, or ``otherwise`` where none is near."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(near)}?" if near else otherwise


def list_some(names: Sequence[str], near: str) -> str:
    """Return some names of a list for a message, those like ``near`` first, and how many more there are."""
    alike = difflib.get_close_matches(near, names, n=3, cutoff=0.5)
    names = [*alike, *(name for name in names if name not in alike)]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more or "none"


def import_extra(module: str, package: str, spec: ModelSpec) -> Any:
    """Import the package of a source, which only the models of that source need.

    Raises
    ------
    ForetellError
        It is not installed, or broken.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise _broken_package(spec, package, error) from error
        raise ForetellError(
            f"{spec.text} needs {package}, which is not installed. Run: pip install {package}"
        ) from error
    except (ImportError, RuntimeError, OSError) as error:
        raise _broken_package(spec, package, error) from error


def _broken_package(spec: ModelSpec, package: str, error: Exception) -> ForetellError:
    return ForetellError(
        f"{spec.text} needs {package}, which fails when it is imported ({first_line(error)}). "
        f"Run: pip install --force-reinstall {package}"
    )


def first_line(error: Exception) -> str:
    """Return the kind of an error and the first line of its text."""
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0].rstrip('. ')}"
