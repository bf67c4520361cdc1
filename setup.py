"""The wheel: everything lies under ``foretell.``, so that it stands next to a user's own folders ``core`` and ``data``.

In the checkout the packages keep their short names (docs/decisions/0067-a-wheel.md). Here their imports are rewritten
in the copies that go into the wheel.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

PACKAGES = ("core", "data", "study", "inquiry", "dashboard")
NAMES = f"({'|'.join(PACKAGES)})"
REWRITTEN = (
    (re.compile(rf"^(\s*)from {NAMES}(?=(\.\w+)* import )", re.MULTILINE), r"\1from foretell.\2"),
    (re.compile(rf"^(\s*)import {NAMES}$", re.MULTILINE), r"\1from foretell import \2"),
    (re.compile(rf"([\"'])from {NAMES}(?=(\.\w+)* import )"), r"\1from foretell.\2"),
    (re.compile(rf"([\"']){NAMES}((?:\.\w+)+(?::\w+)?)\1"), r"\1foretell.\2\3\1"),
)
"""Import statements, the same in code that Foretell writes, and the names ``module:attribute`` of the registries."""


def rewrite_imports(text: str) -> str:
    """Put a module's imports of Foretell's packages under ``foretell.``."""
    for pattern, replacement in REWRITTEN:
        text = pattern.sub(replacement, text)
    return text


class BuildPackage(build_py):
    """Copy the packages and rewrite the copies."""

    def run(self) -> None:
        super().run()
        package = Path(self.build_lib) / "foretell"
        shutil.copytree(".streamlit", package / ".streamlit", dirs_exist_ok=True)
        for file in package.rglob("*.py"):
            file.write_text(rewrite_imports(file.read_text(encoding="utf-8")), encoding="utf-8")


setup(
    packages=["foretell", *(f"foretell.{name}" for name in find_packages() if name.split(".")[0] in PACKAGES)],
    package_dir={"foretell": "package", **{f"foretell.{name}": name for name in PACKAGES}},
    package_data={
        "foretell": ["py.typed"],
        "foretell.core": ["fonts/*"],
        "foretell.data": [
            "bars/*.safetensors",
            "bars/*.json",
            "scenes/*.safetensors",
            "scenes/*.json",
            "scenes/zoo/*.safetensors",
            "scenes/zoo/*.json",
            "scenes/relatives/*.npz",
            "scenes/relatives/*.safetensors",
            "scenes/relatives/*.json",
            "studies/*.toml",
            "studies/trials/*.webp",
            "sets/*.txt",
        ],
        "foretell.study": ["locales/**/*.toml", "analysis/report/templates/*"],
        "foretell.dashboard": ["*.css", "fonts/*", "runner/*", "home/*.html", "home/*.webp", "studies/*.html"],
    },
    cmdclass={"build_py": BuildPackage},
)
