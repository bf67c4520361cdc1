"""The texts that participants read, by language: one TOML file each, with the same keys and the same placeholders."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Literal, get_args

from core.text import read_text

Language = Literal[
    "en",
    "de",
]
"""The languages of the experiment: each has a file here."""


def read_catalogue(folder: Path, language: str) -> dict[str, str]:
    """Read a file of texts: lines of a paragraph are joined, and the table ``ui`` holds the keys ``ui.KEY``."""
    texts = tomllib.loads(read_text(folder / f"{language}.toml"))
    texts |= {f"ui.{key}": text for key, text in texts.pop("ui").items()}
    return {key: re.sub(r"(?<!\n)\n(?!\n)", " ", text.strip()) for key, text in texts.items()}


HERE = Path(__file__).parent
CATALOGUES: dict[str, dict[str, str]] = {language: read_catalogue(HERE, language) for language in get_args(Language)}
FORMER = {language: read_catalogue(HERE / "former", language) for language in ("en", "de")}
"""What bundles show that were frozen without all of their texts, up to version 0.2."""
