"""Backup and restoration of a workspace: databases, key, study files and the opened bundles that `verify` needs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from core.errors import ForetellError
from study.bundle import Bundle
from study.collection.researcher import Researcher
from study.collection.status import StudyStatus
from study.participation.open_workspace import OpenWorkspace
from study.plan.savedfiles import load_study_files, refuse_other_study_files, save_study_files
from study.store import Place, copies, find_file, witness
from study.store.witness import Ends
from study.workspace.workspace import KEY, database

LABEL = "backup.json"
RESPONSES, IDENTITIES, STUDY_FILES = "foretell.backup", "identity.db", "studies"


class Label(BaseModel):
    """The description of a backup in its folder."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: int
    database: str
    bundles: dict[str, str]
    """Folder name by study hash; in the backup a bundle is ``bundles/HASH``."""


@dataclass(frozen=True)
class Backup:
    """What a backup holds, and what is wrong with it already."""

    folder: Path
    studies: int
    ends: Ends
    faults: tuple[str, ...]


def backup(researcher: Researcher, out: Path) -> Backup:
    """Write everything to the new folder `out` while the study runs; the folder appears when it is complete.

    A damaged image, or a study file that cannot be read, does not keep the responses from being saved: it is among the
    faults.

    Raises
    ------
    ForetellError
        The folder exists already, or the database could not be copied.
    """
    if out.exists():
        raise ForetellError(f"{out} already exists. Name a new folder.")
    workspace = researcher.workspace
    researcher.note("backed up", {})
    part = out.with_name(f"{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True, mode=0o700)
    ends = workspace.store.read(witness.ends_of)  # not more than the copy holds
    # Responses first: a participant who starts meanwhile adds an unused id, never a response without its id.
    copies.save(workspace.database, part / RESPONSES)
    if _kind(workspace.database) == "sqlite":
        copies.save(workspace.home / IDENTITIES, part / IDENTITIES)
    shutil.copy2(workspace.key_file, part / KEY)
    names, faults = _save_bundles(researcher.studies(), part / "bundles")
    faults += save_study_files(workspace.home, part / STUDY_FILES)
    label = Label(format=1, database=_kind(workspace.database), bundles=names)
    (part / LABEL).write_text(label.model_dump_json(indent=2), encoding="utf-8")
    return Backup(part.rename(out), len(names), ends, tuple(faults))


def _save_bundles(versions: Iterable[StudyStatus], folder: Path) -> tuple[dict[str, str], list[str]]:
    """Copy the bundles of these versions; return their names by study hash, and what is wrong with the copies."""
    names, faults = {}, []
    for version in versions:
        try:
            Bundle(version.folder)
            _copy_bundle(version.folder, folder / version.study_hash)
        except ForetellError as error:
            faults.append(str(error))
            continue
        names[version.study_hash] = version.folder.name
        faults += Bundle(folder / version.study_hash).find_damage()
    return names, faults


def restore(folder: Path, home: Path, target: Place | None = None) -> list[str]:
    """Restore a backup into an empty workspace and an empty database; return what `verify` finds wrong.

    Raises
    ------
    ForetellError
        Not a backup, another kind of database, or a file would be overwritten.
    """
    target = target or database(home)
    label = _label(folder)
    if label.database != _kind(target):
        raise ForetellError(f"{folder} is a backup of {label.database}, the database here is {_kind(target)}.")
    taken = next((name for name in (KEY, IDENTITIES) if (home / name).exists()), None)
    if taken is not None:
        raise ForetellError(f"{home / taken} already exists. Restore into an empty workspace (FORETELL_HOME).")
    refuse_other_study_files(folder / STUDY_FILES, home)
    places = {study_hash: _place(folder, home, study_hash, name) for study_hash, name in label.bundles.items()}
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    witness.find_path(home, target).unlink(missing_ok=True)  # belongs to the previous database, which is gone
    copies.load(folder / RESPONSES, target)
    if label.database == "sqlite":
        copies.load(folder / IDENTITIES, home / IDENTITIES)
    shutil.copy2(folder / KEY, home / KEY)
    for study_hash, place in places.items():
        if not place.exists():
            _copy_bundle(folder / "bundles" / study_hash, place)
    load_study_files(folder / STUDY_FILES, home)
    workspace = OpenWorkspace(home, target)
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


def _kind(place: Place) -> str:
    return "postgresql" if find_file(place) is None else "sqlite"


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
    for complaint in bundle.find_wrong_links():
        raise ForetellError(complaint)
    place = home / "bundles" / name
    if place.exists() and Bundle(place).study_hash != study_hash:
        place = home / "bundles" / study_hash
    return place
