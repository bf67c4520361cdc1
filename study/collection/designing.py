"""Study files as the researcher's door changes them; a new study belongs to the account that makes it.

Reading study files imports torch, so they are imported where they are needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import ForetellError
from study.collection.access.door import ResearcherDoor, name_of_file
from study.collection.access.permissions import Permission
from study.participation.refusals import Refusal
from study.store import Connection, audit, members, repository
from study.workspace.workspace import bundles, study_files, study_name

if TYPE_CHECKING:
    from study.plan.draft import StudyDraft


class Designing(ResearcherDoor):
    """The part of the researcher's door that writes study files."""

    def save_study_file(self, path: Path, draft: StudyDraft) -> None:
        """Write a study file; a new name in it must be free, or of a study that this account may design.

        A study that is given a free name by its file keeps its members, so an editor does not become its owner.
        """
        named = draft.get("study.name")
        before = name_of_file(path)
        if isinstance(named, str) and named and named != before:
            with self._claim(named, like=before):
                self._save(path, draft)
        else:
            self._save(path, draft)
        digest = hashlib.sha256(draft.text.encode()).hexdigest()
        self._log("changed the study file", name_of_file(path), sha256=digest)

    def _save(self, path: Path, draft: StudyDraft) -> None:
        """Write a study file, and first who typed the names of files in it."""
        from study.plan.typed import note_typed

        note_typed(path, _read_content(path), draft.content, trusted=self.account.is_administrator)
        draft.save(path)

    def copy_study(self, source: Path, name: str, title: str = "") -> Path:
        """Make a study under a new name from a template or another study; see `study.plan.studyfiles.copy_study`."""
        from study.plan import studyfiles
        from study.plan.templates import templates

        home = self.workspace.home
        if source not in templates():
            self.require(Permission.DESIGN, name_of_file(source))
        studyfiles.check_free(home, name)
        with self._claim(name):
            made = studyfiles.copy_study(source, home, name, title)
        self._log("made a study file", name, source=source.stem)
        return made

    def copy_pilot(self, path: Path, per_condition: int) -> Path:
        """Make the pilot of a study, with the same members; see `study.plan.studyfiles.copy_pilot`."""
        from study.plan import studyfiles

        main, home = name_of_file(path), self.workspace.home
        studyfiles.check_free(home, studyfiles.name_pilot(main))
        with self._claim(studyfiles.name_pilot(main), like=main):
            made = studyfiles.copy_pilot(path, home, per_condition)
        self._log("made a pilot", studyfiles.name_pilot(main), source=main)
        return made

    def rename_study(self, path: Path, name: str) -> Path:
        """Rename a study that is not built, with its members; see `study.plan.studyfiles.rename_study`."""
        from study.plan import studyfiles

        old, home = name_of_file(path), self.workspace.home
        studyfiles.check_free(home, name)
        with self._claim(name, like=old):
            made = studyfiles.rename_study(path, home, name)
        if not self._study_exists(old):
            self.workspace.store.write(lambda db: self._unassign(db, old))
        self._log("renamed a study", name, before=old)
        return made

    def archive_study(self, path: Path) -> Path:
        """Put a study file away; see `study.plan.studyfiles.archive_study`."""
        from study.plan import studyfiles

        self._log("archived a study file", name_of_file(path))
        return studyfiles.archive_study(path)

    def restore_study(self, path: Path) -> Path:
        """Bring a study file back from the archive; see `study.plan.studyfiles.restore_study`."""
        from study.plan import studyfiles

        self._log("restored a study file", name_of_file(path))
        return studyfiles.restore_study(path)

    def start_build(self, path: Path) -> None:
        """Log in the audit trail that the study of this file is about to be built."""
        self._log("started a build", name_of_file(path))

    def start_simulation(self, study: str, participants: int) -> None:
        """Log in the audit trail that simulated participants are about to take part."""
        self._log("started a simulation", study, participants=participants)

    def _log(self, act: str, study: str, **detail: str | int) -> None:
        self.workspace.note(self.actor, act, {"study": study, **detail})

    @contextmanager
    def _claim(self, name: str, like: str | None = None) -> Iterator[None]:
        """Make this account the owner of a new study, or give it the members of another; undo that if it fails.

        A name under which something exists, be it only responses, is claimed by nobody: it needs the permission.
        """

        def work(db: Connection) -> bool:
            known = {version["name"] for version in repository.versions(db)} | self._names_on_disk()
            if name in known or members.has_members(db, name):
                self._require_in(db, Permission.DESIGN, name)
                return False
            if like is None and not self._may_create(db):
                raise Refusal(403, "Only owners and editors of a study make new ones. Ask an administrator.")
            return self._assign(db, name, like)

        new = self.workspace.store.write(work)
        try:
            yield
        except BaseException:
            if new:
                self.workspace.store.write(lambda db: self._unassign(db, name))
            raise

    def _assign(self, db: Connection, name: str, like: str | None) -> bool:
        now, address = self.workspace.clock(), self.account.address
        given = {} if like is None else {row["account"]: row["role"] for row in members.of_study(db, like)}
        if like is None and address is not None and not self.account.is_administrator:
            given = {address: "owner"}
        for account, role in given.items():
            members.put(db, name, account, role, now, self.actor)
            detail = {"study": name, "account": account, "role": role}
            audit.append(db, now, self.actor, "added a member", detail)
        return bool(given)

    def _unassign(self, db: Connection, name: str) -> None:
        for row in members.of_study(db, name):
            members.remove(db, name, row["account"])
            detail = {"study": name, "account": row["account"]}
            audit.append(db, self.workspace.clock(), self.actor, "removed a member", detail)

    def _names_on_disk(self) -> set[str]:
        from study.plan import studyfiles

        home = self.workspace.home
        built = {study_name(folder) for folder in bundles(home)}
        return built | {name_of_file(file) for file in (*study_files(home), *studyfiles.list_archived(home))}

    def _study_exists(self, study: str) -> bool:
        known = {version["name"] for version in self.workspace.store.read(repository.versions)}
        return study in known or study in self._names_on_disk()


def _read_content(path: Path) -> dict[str, Any]:
    """Read the content of a study file; empty where there is none that can be read."""
    from study.plan.draft import StudyDraft

    try:
        return StudyDraft.read(path).content
    except ForetellError:
        return {}
