"""Backup and restoration of a workspace: databases, key and the opened bundles, everything that `verify` needs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from core.errors import ForetellError
from study.bundle import Bundle
from study.collection.researcher import Researcher
from study.participation.open_workspace import OpenWorkspace
from study.store import copies
from study.workspace.workspace import database

LABEL = "backup.json"
RESPONSES, IDENTITIES, KEY = "foretell.backup", "identity.db", "participants.key"


class Label(BaseModel):
    """The description of a backup in its folder."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: int
    database: str
    bundles: dict[str, str]
    """Folder name by study hash; in the backup a bundle is ``bundles/HASH``."""


def backup(researcher: Researcher, out: Path) -> Path:
    """Write everything to the new folder `out` while the study runs; the folder appears when it is complete.

    Raises
    ------
    ForetellError
        The folder exists already, or the database could not be copied.
    """
    if out.exists():
        raise ForetellError(f"{out} already exists. Name a new folder.")
    researcher.note("backed up", {})
    part = out.with_name(f"{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True, mode=0o700)
    # Responses first: a participant who starts meanwhile adds an unused id, never a response without its id.
    copies.save(researcher.workspace.database, part / RESPONSES)
    if _kind(researcher.workspace.database) == "sqlite":
        copies.save(f"sqlite:///{researcher.workspace.home / IDENTITIES}", part / IDENTITIES)
    shutil.copy2(researcher.workspace.key_file(), part / KEY)
    names = {}
    for version in researcher.studies():
        _copy_bundle(version.folder, part / "bundles" / version.study_hash)
        names[version.study_hash] = version.folder.name
    label = Label(format=1, database=_kind(researcher.workspace.database), bundles=names)
    (part / LABEL).write_text(label.model_dump_json(indent=2), encoding="utf-8")
    return part.rename(out)


def restore(folder: Path, home: Path, url: str | None = None) -> list[str]:
    """Restore a backup into an empty workspace and an empty database; return what `verify` finds wrong.

    Raises
    ------
    ForetellError
        Not a backup, another kind of database, or a file would be overwritten.
    """
    url = url or database(home)
    label = _label(folder)
    if label.database != _kind(url):
        raise ForetellError(f"{folder} is a backup of {label.database}, the database here is {_kind(url)}.")
    taken = next((name for name in (KEY, IDENTITIES) if (home / name).exists()), None)
    if taken is not None:
        raise ForetellError(f"{home / taken} already exists. Restore into an empty workspace (FORETELL_HOME).")
    places = {study_hash: _place(folder, home, study_hash, name) for study_hash, name in label.bundles.items()}
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / "foretell.ends").unlink(missing_ok=True)  # belongs to the previous database, which is gone
    copies.load(folder / RESPONSES, url)
    if label.database == "sqlite":
        copies.load(folder / IDENTITIES, f"sqlite:///{home / IDENTITIES}")
    shutil.copy2(folder / KEY, home / KEY)
    for study_hash, place in places.items():
        if not place.exists():
            _copy_bundle(folder / "bundles" / study_hash, place)
    workspace = OpenWorkspace(home, url)
    try:
        researcher = Researcher(workspace)
        researcher.move_bundles(places)
        return researcher.verify()
    finally:
        workspace.close()


def _copy_bundle(source: Path, target: Path) -> None:
    """Copy a bundle without links to folders: a circular link would be copied until the disk is full."""

    def list_skipped(folder: str, names: list[str]) -> list[str]:
        paths = {name: Path(folder) / name for name in names}
        return [name for name, path in paths.items() if path.is_symlink() and not path.is_file()]

    shutil.copytree(source, target, ignore=list_skipped)


def _kind(url: str) -> str:
    return "sqlite" if url.startswith("sqlite") else "postgresql"


def _label(folder: Path) -> Label:
    try:
        return Label.model_validate(json.loads((folder / LABEL).read_bytes()))
    except (OSError, ValueError, ValidationError):
        raise ForetellError(f"{folder} is not a backup: {LABEL} is missing or unreadable. Name the folder.") from None


def _place(folder: Path, home: Path, study_hash: str, name: str) -> Path:
    """Return a bundle's place; names in a backup are untrusted, so they must stay inside the workspace."""
    bundle = Bundle(folder / "bundles" / Path(study_hash).name)
    if bundle.study_hash != study_hash or name in ("", ".", "..") or Path(name).name != name:
        raise ForetellError(f"{folder / LABEL} does not match the bundle {study_hash[:12]}…. Use another backup.")
    for complaint in bundle.find_damage():
        raise ForetellError(complaint)
    place = home / "bundles" / name
    if place.exists() and Bundle(place).study_hash != study_hash:
        place = home / "bundles" / study_hash
    return place
