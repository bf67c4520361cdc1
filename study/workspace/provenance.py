"""What made a bundle: the code, the libraries, the machine. Imports nothing heavy, so that a start can ask it."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import version
from pathlib import Path

from study.workspace.workspace import ROOT

CODE = ("core/**/*.py", "data/**/*.py", "study/**/*.py", "study/**/*.html", "study/**/*.md", "study/locales/*.toml")
"""Code, the report's templates and the texts of the experiment."""


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
    """SHA-256 over the source of the packages that make stimuli, and the texts of the experiment."""
    digest = hashlib.sha256()
    for pattern in CODE:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()
