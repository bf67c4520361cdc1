"""String-table registries: a name points to ``module:attribute``, imported only when asked for.

Nothing depends on the order of imports, listing the names does not import torch, and the tables survive a
reload of the pages. Installed packages add names through an entry-point group; a package that cannot be imported
takes nothing else with it.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from core.errors import ForetellError

R = TypeVar("R")
"""What is known of an object before it is used."""


@dataclass(frozen=True)
class Plugin:
    """One name that an installed package offers: ``package`` is its name and version."""

    name: str
    package: str
    entry: EntryPoint

    @property
    def digest(self) -> str:
        """SHA-256 of the Python files of the entry point's top-level module or package, which is not imported."""
        spec = importlib.util.find_spec(self.entry.module.partition(".")[0])
        folders = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
        files = sorted(file for folder in folders for file in folder.rglob("*.py"))
        if not files and spec is not None and spec.origin is not None:
            files = [Path(spec.origin)]
        content = b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)
        return hashlib.sha256(f"{self.package} {self.entry.value}".encode() + content).hexdigest()


class Registry(Mapping[str, Any]):
    """A read-only mapping of public names to lazily imported objects.

    Parameters
    ----------
    kind
        What is registered, in words, for the error message ("method", "image set", ...).
    table
        ``{name: "package.module:attribute"}``.
    group
        Entry-point group whose names are added to the table; a name of the table stays what it is.
    """

    def __init__(self, kind: str, table: Mapping[str, str], group: str | None = None) -> None:
        self.kind = kind
        self.group = group
        self._table = dict(table)

    def __getitem__(self, name: str) -> Any:
        """Import and return the object.

        Raises
        ------
        ForetellError
            An unknown name (with the nearest ones), or a package that cannot be imported.
        """
        if name not in self._table:
            return self._load(self.plugins[name]) if name in self.plugins else self._refuse(name)
        module, _, attribute = self._table[name].partition(":")
        return getattr(importlib.import_module(module), attribute)

    def __iter__(self) -> Iterator[str]:
        return iter((*self._table, *self.plugins))

    def __len__(self) -> int:
        return len(self._table) + len(self.plugins)

    def __contains__(self, name: object) -> bool:
        return name in self._table or name in self.plugins

    def describe(self, name: str) -> str:
        """Return the first paragraph of the documentation of the module that a name is in, on one line."""
        path = self._table[name] if name in self._table else self.plugins[name].entry.value
        module = importlib.import_module(path.partition(":")[0])
        return " ".join((module.__doc__ or "").strip().split("\n\n")[0].split())

    def record_of(self, name: str, unknown: R) -> R:
        """Return the ``record`` of an object, or ``unknown``: without one, or where there is no such name."""
        described = None
        with suppress(ForetellError):
            described = self[name]
        record = getattr(described, "record", None)  # of a package's own function it may be anything
        return record if isinstance(record, type(unknown)) else unknown

    def usable(self) -> Iterator[tuple[str, Any]]:
        """Yield each name with its object; packages that cannot be imported are left out."""
        for name in self:
            try:
                yield name, self[name]
            except ForetellError:
                if name in self._table:
                    raise

    @cached_property
    def plugins(self) -> dict[str, Plugin]:
        """What installed packages offer under names that the table leaves free; nothing is imported."""
        return {
            name: offers[0] for name, offers in self._offered.items() if name not in self._table and len(offers) == 1
        }

    @property
    def conflicts(self) -> tuple[str, ...]:
        """A sentence for each name that an installed package offers and cannot have."""
        taken = [
            f"The package {one.package} offers the {self.kind} {name!r}, which Foretell has: Foretell's own is used. "
            "Rename it in that package's entry points."
            for name, offers in self._offered.items()
            if name in self._table
            for one in offers
        ]
        return (*taken, *(self._describe_rivals(n) for n, f in self._offered.items() if n not in self._table and f[1:]))

    @cached_property
    def _offered(self) -> dict[str, list[Plugin]]:
        offers: dict[str, dict[str, Plugin]] = {}
        for entry in entry_points(group=self.group) if self.group else ():
            package = "(unknown)" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
            # One package may be on the path twice.
            offers.setdefault(entry.name, {})[f"{package} {entry.value}"] = Plugin(entry.name, package, entry)
        return {name: list(of.values()) for name, of in offers.items()}

    def _describe_rivals(self, name: str) -> str:
        packages = " and ".join(one.package for one in self._offered[name])
        return f"The packages {packages} both offer the {self.kind} {name!r}, so neither is used. Remove one of them."

    def _load(self, plugin: Plugin) -> Any:
        try:
            return plugin.entry.load()
        except (Exception, SystemExit) as error:  # the package's own code
            said = str(error).partition("\n")[0]
            raise ForetellError(
                f"The {self.kind} {plugin.name!r} of the package {plugin.package} cannot be imported "
                f"({type(error).__name__}: {said}). Repair or remove that package; everything else works without it."
            ) from error

    def _refuse(self, name: str) -> Any:
        rivals = len(self._offered.get(name, ())) > 1
        raise ForetellError(self._describe_rivals(name) if rivals else self.unknown(name))

    def unknown(self, name: str) -> str:
        """Return the error for a name that is not in the table, with the nearest names."""
        near = difflib.get_close_matches(name, list(self), n=3, cutoff=0.5)
        known = ", ".join(sorted(self))
        hint = f"Did you mean {' or '.join(repr(n) for n in near)}?" if near else f"Known: {known}."
        return f"Unknown {self.kind} {name!r}. {hint}"
