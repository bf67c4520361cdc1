"""Provenance of what was made: the code. Imports nothing heavy, so it can be queried at start-up."""

from __future__ import annotations

import hashlib

from study.workspace.workspace import ROOT

PACKAGES = ("core", "data", "study", "inquiry")
CODE = (*(f"{name}/**/*.py" for name in PACKAGES), "study/**/*.html", "study/**/*.md", "study/locales/*.toml")
"""Code, report templates and texts of the experiment."""


def code_digest() -> str:
    """Hash the source of the packages that make stimuli, and the texts of the experiment (SHA-256)."""
    digest = hashlib.sha256()
    for pattern in CODE:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()
