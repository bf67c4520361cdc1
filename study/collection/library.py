"""Image sets and networks of a workspace as the researcher's door changes them.

They belong to the account that added them, which the audit trail names. Those of earlier versions, and those that a
user of this machine put there, belong to the administrators.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from core.errors import ForetellError
from core.files import FileLimits
from core.types import Progress
from study.collection.access.accounts import name_author
from study.collection.access.door import ResearcherDoor
from study.collection.access.permissions import Permission
from study.participation.refusals import Refusal
from study.store import Connection, audit
from study.store.rows import Row
from study.workspace.folders import find_limits, find_sets

if TYPE_CHECKING:
    from study.workspace.imagefolders import AddedSet, Entry

Kind = Literal["image set", "network"]
MOST_BYTES = 20 * 2**30
"""Bytes of all image sets that one account has added; administrators have no limit."""
MOST_NETWORKS = 50
MODELS = "models"


class Library(ResearcherDoor):
    """The part of the researcher's door that changes image sets and networks."""

    def find_file_limits(self) -> FileLimits | None:
        """Find the folders to which the account is limited when it names a file; None for an administrator."""
        return None if self.account.is_administrator else find_limits(self.workspace.home)

    def explain_adding_refusal(self) -> str | None:
        """Explain why the account may not add image sets and networks; None if it may."""
        if self.workspace.store.read(self._may_create):
            return None
        return "Only owners and editors of a study add image sets and networks. Ask an administrator."

    def require_adding(self) -> None:
        """Raise `Refusal` (403) unless the account may add image sets and networks."""
        refusal = self.explain_adding_refusal()
        if refusal is not None:
            raise Refusal(403, refusal)

    def explain_library_refusal(self, kind: Kind, name: str) -> str | None:
        """Explain why the account may not change or remove an item of the library; None if it may."""
        if self.account.is_administrator:
            return None
        owner = self.workspace.store.read(lambda db: _find_owner(db, kind, name))
        if owner is not None and owner == self.account.address:
            return None
        if owner is None or owner == audit.RESEARCHER:
            whose = "an administrator"
        else:  # an address is for colleagues who design studies too
            whose = name_author(owner) if self.explain_adding_refusal() is None else "another account"
        return f"The {kind} {name} belongs to {whose}, who may change or remove it."

    def add_image_set(
        self, name: str, entries: Sequence[Entry], progress: Progress, most_bytes: int, *, nested: bool = False
    ) -> AddedSet:
        """Add an image set, which then belongs to this account; see `study.workspace.imagefolders.add_set`.

        Raises
        ------
        ForetellError
            What `add_set` refuses; the account may not add sets, or its sets have too many bytes already.
        """
        from study.workspace.imagefolders import add_set, format_bytes

        self.require_adding()
        left = self._count_free_bytes()
        if left <= 0:
            raise ForetellError(
                f"Your image sets have {format_bytes(MOST_BYTES)}, the most that one account may add. Remove one first."
            )
        added = add_set(
            find_sets(self.workspace.home), name, entries, progress, int(min(most_bytes, left)), nested=nested
        )
        self._log_item("added", "image set", added.folder.name, images=added.images, bytes=added.bytes)
        return added

    def rename_categories(self, name: str, names: Mapping[str, str | None]) -> None:
        """Rename categories of an image set; see `study.workspace.imagesets.rename_categories`."""
        from study.workspace.imagesets import rename_categories

        self._require_item("image set", name)
        rename_categories(_find_set(self.workspace.home, name), names)
        self._log_item("renamed classes of", "image set", name)

    def remove_image_set(self, name: str) -> None:
        """Remove an image set with all its images."""
        from study.workspace.imagesets import remove_set

        self._require_item("image set", name)
        remove_set(_find_set(self.workspace.home, name))
        self._log_item("removed", "image set", name)

    def list_network(self, line: str) -> None:
        """Add a network to the list of networks; it then belongs to this account."""
        from study.workspace import modelfiles

        self.require_adding()
        own = [row for row in self._list_own("network") if row["name"] != line]
        if not self.account.is_administrator and len(own) >= MOST_NETWORKS:
            raise ForetellError(f"You have added {MOST_NETWORKS} networks, the most for one account. Remove one first.")
        folder = self.workspace.home / MODELS
        if line not in modelfiles.read_lines(folder):
            modelfiles.add_line(folder, line)
            self._log_item("added", "network", line)

    def write_class_names(self, title: str, names: Sequence[str]) -> Path:
        """Write the class names of a CLIP network; see `study.workspace.modelfiles.write_names`."""
        from study.workspace import modelfiles

        self.require_adding()
        return modelfiles.write_names(self.workspace.home / MODELS, title, names)

    def add_network_files(self, entries: Sequence[Entry], title: str) -> str:
        """Add a network from files, which run when it is opened; return how it is named.

        Several files get a folder of the name ``title``, or of the network's file.
        """
        from study.workspace import modelfiles

        self.require(Permission.ADMINISTER)
        folder = self.workspace.home / MODELS
        if len(entries) == 1 and entries[0].name.endswith(modelfiles.ENDINGS):
            with entries[0].open() as source:
                model = f"{MODELS}/{modelfiles.add_file(folder, entries[0].name, source.read()).name}"
        else:
            model = modelfiles.add_network(folder, entries, title)
        self._log_item("added", "network", model)
        return model

    def remove_network(self, name: str) -> None:
        """Remove a network from the list, or the files of one; downloaded weights stay in the library's cache."""
        from study.workspace import modelfiles

        self._require_item("network", name)
        folder = self.workspace.home / MODELS
        if name in modelfiles.read_lines(folder):
            modelfiles.remove_line(folder, name)
        else:
            modelfiles.remove_file(folder, modelfiles.find_files(name))
        self._log_item("removed", "network", name)

    def _require_item(self, kind: Kind, name: str) -> None:
        refusal = self.explain_library_refusal(kind, name)
        if refusal is not None:
            raise Refusal(403, refusal)

    def _count_free_bytes(self) -> float:
        if self.account.is_administrator:
            return float("inf")
        return float(MOST_BYTES - sum(int(row["bytes"]) for row in self._list_own("image set")))

    def _list_own(self, kind: Kind) -> list[dict[str, Any]]:
        """List what this account has added and what is still there."""
        events = self.workspace.store.read(lambda db: _list_events(db, kind))
        own = {detail["name"]: detail for detail, row in events.values() if row["actor"] == self.actor}
        return list(own.values())

    def _log_item(self, act: str, kind: Kind, name: str, **detail: int) -> None:
        self.workspace.note(self.actor, _name_act(act, kind), {"name": name, **detail})


def _find_set(home: Path, name: str) -> Path:
    """Find an image set of the workspace by its name, which leads to no other folder."""
    folder = find_sets(home) / name
    if folder.parent != find_sets(home) or name.startswith(".") or not folder.is_dir():
        raise ForetellError(f"There is no image set {name!r} any more. Reload the page.")
    return folder


def _find_owner(db: Connection, kind: Kind, name: str) -> str | None:
    event = _list_events(db, kind).get(name)
    return None if event is None else str(event[1]["actor"])


def _list_events(db: Connection, kind: Kind) -> dict[str, tuple[dict[str, Any], Row]]:
    """List who added what of a kind that was not removed since, with the details, by name."""
    rows = [*audit.acts(db, _name_act("added", kind)), *audit.acts(db, _name_act("removed", kind))]
    present: dict[str, tuple[dict[str, Any], Row]] = {}
    for row in sorted(rows, key=lambda row: int(row["seq"])):
        detail = json.loads(row["detail_json"])
        present.pop(detail["name"], None)
        if row["act"] == _name_act("added", kind):
            present[detail["name"]] = detail, row
    return present


def _name_act(act: str, kind: Kind) -> str:
    return f"{act} {'an image set' if kind == 'image set' else 'a network'}"
