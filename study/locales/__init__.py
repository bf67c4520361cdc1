"""The texts that participants read, by language: one TOML file each, with the same keys and the same placeholders."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Literal, get_args

from core.text import read_text

Language = Literal[
    "en",
    "de",
]
"""The languages of the experiment: each has a file here."""
TASKS = "tasks"
"""The table of a file that holds the texts of tasks."""


def read_catalogue(folder: Path, language: str) -> dict[str, str]:
    """Read a file of texts: lines of a paragraph are joined, and the table ``ui`` holds the keys ``ui.KEY``."""
    texts = tomllib.loads(read_text(folder / f"{language}.toml"))
    texts.pop(TASKS, None)
    return _flatten(texts)


def read_task_texts(folder: Path, language: str) -> dict[str, dict[str, str]]:
    """Read the texts of each task: those that it has instead of the catalogue's, and its own."""
    tasks = tomllib.loads(read_text(folder / f"{language}.toml")).get(TASKS, {})
    return {name: _flatten(texts) for name, texts in tasks.items()}


def _flatten(texts: dict[str, Any]) -> dict[str, str]:
    flat = {**texts, **{f"ui.{key}": text for key, text in texts.get("ui", {}).items()}}
    flat.pop("ui", None)
    return {key: re.sub(r"(?<!\n)\n(?!\n)", " ", text.strip()) for key, text in flat.items()}


HERE = Path(__file__).parent
CATALOGUES: dict[str, dict[str, str]] = {language: read_catalogue(HERE, language) for language in get_args(Language)}
_BY_LANGUAGE = {language: read_task_texts(HERE, language) for language in CATALOGUES}
TASK_TEXTS: dict[str, dict[str, dict[str, str]]] = {
    task: {language: texts.get(task, {}) for language, texts in _BY_LANGUAGE.items()} for task in _BY_LANGUAGE["en"]
}
"""By task and language: its texts that differ from the catalogue's or are only its own."""
FORMER = {language: read_catalogue(HERE / "former", language) for language in ("en", "de")}
"""What bundles show that were frozen without all of their texts, up to version 0.2."""
TEMPLATES = {
    language: read_catalogue(HERE / "templates", language)
    for language in CATALOGUES
    if (HERE / "templates" / f"{language}.toml").exists()
}
"""What the templates of studies say that is no text of the catalogue: a language may leave it in English."""
