"""A study file while it is being written: its values are read and set by place, and its comments are kept."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from core.errors import ForetellError
from core.text import read_text
from study.plan.config import StudyConfig
from study.plan.former import PRESENT_NAMES
from study.plan.procedure import TO_BUILD
from study.workspace.faults import Fault, describe_syntax
from study.workspace.files import write_whole
from study.workspace.tomlfile import check_content, use_present_names

MISSING = object()
"""The value at a place that the file does not set."""
_HEADING = re.compile(r"\A(?:[ \t]*(?:#.*)?\n)+")
_CROWDED = re.compile(r"(?m)(?<=[^\n])\n(?=\[\[?[\w.]+\]\]?[ \t]*(?:#.*)?$)")
"""The end of a line before the head of a table, without a blank line between them."""


class StudyDraft:
    """The text of a study file, which may still have faults.

    A place is a dotted name such as ``trials.per_type``. Setting one changes its line and leaves every other as it is.

    Raises
    ------
    ForetellError
        The text is not valid TOML.
    """

    def __init__(self, text: str) -> None:
        try:
            tomllib.loads(text)  # it counts columns from 1, and says what it expected
            self._document = tomlkit.parse(use_present_names(text, PRESENT_NAMES))
        except (TOMLKitError, ValueError, RecursionError) as error:
            raise ForetellError(f"This is not valid TOML. {describe_syntax(error, text)}") from None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a study file.

        Raises
        ------
        ForetellError
            The file cannot be read, or is not valid TOML.
        """
        try:
            return cls(read_text(path))
        except OSError as error:
            raise ForetellError(f"{path} cannot be read: {error.strerror}. Choose another study file.") from None

    @property
    def text(self) -> str:
        """The file's text."""
        written = tomlkit.dumps(self._document)
        spaced = _CROWDED.sub("\n\n", written)
        return spaced if tomllib.loads(spaced) == tomllib.loads(written) else written  # a text may look like a head

    @property
    def content(self) -> dict[str, Any]:
        """The file's values, as plain Python."""
        return self._document.unwrap()

    def get(self, place: str) -> Any:
        """Return the value at a place as plain Python; `MISSING` where the file does not set it."""
        value: Any = self.content
        for key in place.split("."):
            if not isinstance(value, Mapping) or key not in value:
                return MISSING
            value = value[key]
        return value

    def set(self, place: str, value: Any) -> None:
        """Set the value at a place; the tables it needs are added, and a table that is there keeps its comments.

        Raises
        ------
        ForetellError
            Something on the way to the place is a value and not a table.
        """
        *tables, key = place.split(".")
        holder = self._table(tables)
        old = holder.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping) and not isinstance(old, InlineTable):
            for name in set(old) - set(value):
                self._table([*tables, key]).remove(name)
            for name, one in value.items():
                self.set(f"{place}.{name}", one)
            return
        item = _make_item(value, nested=bool(tables))
        if old is None:
            holder.append(key, item)
        else:
            holder[key] = item  # tomlkit keeps the line's comment

    def remove(self, place: str) -> None:
        """Remove the value at a place, so that its default holds; a table that is empty then goes too."""
        *tables, key = place.split(".")
        if self.get(place) is MISSING:
            return
        holder = self._table(tables)
        del holder[key]
        if tables and not holder:
            self.remove(".".join(tables))

    def remove_heading(self) -> None:
        """Remove the comments above the first setting, which say what the file is."""
        self._document = tomlkit.parse(_HEADING.sub("", tomlkit.dumps(self._document)))

    def check(self) -> tuple[StudyConfig | None, list[Fault]]:
        """Return the settings; or None, with everything that is wrong."""
        return check_content(self.content, StudyConfig, TO_BUILD)

    def save(self, path: Path) -> None:
        """Write the file whole or not at all.

        Raises
        ------
        ForetellError
            It cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, self.text.encode())
        except OSError as error:
            raise ForetellError(
                f"{path} cannot be written ({error.strerror}): nothing was changed. Free space or give this user "
                "permission to write it."
            ) from None

    def _table(self, names: list[str]) -> Any:
        holder: Any = self._document
        for name in names:
            if name not in holder:
                holder.append(name, tomlkit.table())
            holder = holder[name]
            if not isinstance(holder, Mapping):
                raise ForetellError(f"{'.'.join(names)}: {name} is a value and not a table. Correct it in the file.")
        return holder


def _make_item(value: Any, *, nested: bool) -> Any:
    """Return a value as TOML writes it: a table within another on one line, a list of tables as tables."""
    if isinstance(value, Mapping) and nested:
        table = tomlkit.inline_table()
        table.update(value)
        return table
    return tomlkit.item(value)
