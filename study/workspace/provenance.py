"""What made a bundle: the code, the libraries, the machine. Imports nothing heavy, so that a start can ask it."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import version
from pathlib import Path

from study.workspace.workspace import ROOT

CODE = ("core", "data", "study")
SOURCES = (".py", ".html", ".md")
"""Suffixes of code and of the templates of the report."""


def environment(base: Path) -> dict[str, str]:
    """What made the bundle: kept for provenance, not part of the study's identity."""
    packages = ("torch", "torchvision", "numpy", "pillow")
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "code": code_digest(),
        "base": str(base),
        **{package: version(package) for package in packages},
    }


def code_digest() -> str:
    """SHA-256 over the source of the packages that make stimuli."""
    digest = hashlib.sha256()
    for package in CODE:
        for path in sorted(path for path in (ROOT / package).rglob("*") if path.suffix in SOURCES):
            digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()
