"""String-table registries: a name points to ``module:attribute``, imported only when asked for.

Nothing depends on the order of imports, listing the names does not import torch, and the tables survive a
reload of the pages.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from core.errors import ForetellError


class Registry(Mapping[str, Any]):
    """A read-only mapping of public names to lazily imported objects.

    Parameters
    ----------
    kind
        What is registered, in words, for the error message ("method", "image set", ...).
    table
        ``{name: "package.module:attribute"}``.
    """

    def __init__(self, kind: str, table: Mapping[str, str]) -> None:
        self.kind = kind
        self._table = dict(table)

    def __getitem__(self, name: str) -> Any:
        """Import and return the object; an unknown name raises `ForetellError` with the nearest ones."""
        if name not in self._table:
            raise ForetellError(self.unknown(name))
        module, _, attribute = self._table[name].partition(":")
        return getattr(importlib.import_module(module), attribute)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def unknown(self, name: str) -> str:
        """Return the error for a name that is not in the table, with the nearest names."""
        near = difflib.get_close_matches(name, self._table, n=3, cutoff=0.5)
        known = ", ".join(sorted(self._table))
        hint = f"Did you mean {' or '.join(repr(n) for n in near)}?" if near else f"Known: {known}."
        return f"Unknown {self.kind} {name!r}. {hint}"
