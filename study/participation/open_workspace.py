"""An open workspace: its databases, its bundles, its key; what both sides of the service build on."""

from __future__ import annotations

import contextlib
import hmac
import math
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from core.errors import ForetellError
from study.bundle import Bundle, Manifest
from study.participation.ending import code_hash
from study.participation.key import find_key_fault
from study.participation.payloads import SOURCES, Source
from study.participation.refusals import Refusal
from study.store import (
    Connection,
    Place,
    Store,
    StoreError,
    audit,
    find_file,
    identities,
    repository,
    timemark,
    witness,
)
from study.store.rows import SessionRow, VersionRow
from study.workspace.files import close_to_others
from study.workspace.workspace import KEY
from study.workspace.workspace import database as default_database

COPYING_S = 6.0
"""How often the log is copied into the database: more often writes the same pages more often, later takes longer."""


class OpenWorkspace:
    """The stores of one workspace and the bundles its studies were opened from; see `study.service.Service`."""

    def __init__(self, home: Path, database: Place | None = None, clock: Callable[[], int] = time.time_ns) -> None:
        self.home = home
        self.clock = clock
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.database = database or default_database(home)
        self._file = find_file(self.database)
        if self._file is not None:
            self._refuse_lost_file(self._file)
            close_to_others(self._file)
            close_to_others(home / "identity.db")
        self.store = Store(self.database)
        beside = self.database if self._file is None else home / "identity.db"
        self.identities = Store(beside, identities.MIGRATIONS, "identity")
        self.bundles: dict[str, Bundle] = {}
        self._marked = 0
        self._copied = -math.inf
        self._find_faults()
        if self.store.fault is None:
            self._index_codes()

    def require_sound(self) -> None:
        """Refuse to go on where responses, files or the key of this workspace are missing."""
        if self.store.fault is not None:
            raise StoreError(self.store.fault)

    def note(self, actor: str, act: str, detail: Mapping[str, Any]) -> None:
        """Put an administrative act into the audit trail; `detail` must name nobody."""
        self.store.write(lambda db: audit.append(db, self.clock(), actor, act, detail))

    def close(self) -> None:
        """Commit what is queued and let go of the database."""
        with contextlib.suppress(StoreError):
            self._keep_ends()
        self.store.close()
        self.identities.close()

    def erase_identities(self) -> int:
        """Forget the recruiters' ids whose time is over; how many."""
        until = self.store.write(self.compute_trusted_time)
        erased = self.identities.write(lambda db: identities.erase_due(db, until))
        self.store.forget_erased()
        if erased:
            self.identities.erase(lambda _: None)
            detail = {"people": erased}
            self.store.write(lambda db: audit.append(db, self.clock(), "server", "erased identities", detail))
        return erased

    def keep_watch(self) -> None:
        """Do what a running server does every few seconds: find losses, keep the chains' ends, empty the log.

        Nothing is stored any more once something was lost: the files or the newest rows of the database.
        """
        self.store.write(lambda _: None)  # the writer looks for the database's files
        self._keep_ends()
        if time.monotonic() - self._copied >= COPYING_S:
            self.store.copy_log()
            self._copied = time.monotonic()
        if self.clock() - self._marked >= timemark.STEP_NS:
            self.store.write(self.compute_trusted_time)
            self._marked = self.clock()
            self.store.forget_erased()
            self.identities.forget_erased()

    def _keep_ends(self) -> None:
        """Keep the chains' ends outside the database, unless it lacks what was kept before: that is evidence."""
        ends, faults = self.store.read(lambda db: (witness.ends_of(db), self.find_lost_rows(db)))
        if faults:
            self._refuse_writes(faults[0])
        elif ends != witness.read(self.ends_file):
            witness.keep(self.ends_file, ends)

    def _find_faults(self) -> None:
        """Store nothing where the key or the newest rows are missing."""
        self.key_fault = find_key_fault(self.key_file, self.store)
        if self.key_fault is not None:
            self.store.refuse_writes(self.key_fault)
        for fault in self.store.read(self.find_lost_rows):
            self._refuse_writes(fault)

    def _refuse_writes(self, fault: str) -> None:
        self.store.refuse_writes(
            f"{fault} Until then nothing is stored; to go on without them, delete {self.ends_file}."
        )

    def _refuse_lost_file(self, file: Path) -> None:
        """Refuse to make a new database where there was one."""
        former = Path(unquote(str(file)).partition("?")[0])
        if file.exists():
            return
        if former != file and former.is_file():
            raise StoreError(
                f"The database of {self.home} is at {former}, where earlier versions put it by mistake. Move it to "
                f"{file}, and identity.db from the same folder to {self.home}."
            )
        ends = witness.read(self.ends_file)
        if ends is not None and ends.act:
            raise StoreError(
                f"{file} is missing, and {self.ends_file} knows of {ends.response:,} responses in it (last: "
                f"{ends.last_response}). Restore it or the newest backup; to begin with an empty database, delete "
                f"{self.ends_file}."
            )

    def find_lost_rows(self, db: Connection) -> list[str]:
        kept = witness.read(self.ends_file)
        return [] if kept is None else list(witness.find_missing_ends(db, kept))

    @property
    def ends_file(self) -> Path:
        """The file of the chains' ends: ``foretell.ends`` next to ``foretell.db``."""
        return witness.find_path(self.home, self.database)

    def compute_trusted_time(self, db: Connection) -> int:
        """Compute the time by which participations end and ids are erased: see `study.store.timemark`."""
        return timemark.compute_trusted_time(db, self.clock())

    @property
    def key_file(self) -> Path:
        """The key of pseudonyms, private codes and personal links."""
        return self.home / KEY

    def _index_codes(self) -> None:
        """Add the private codes of an earlier version's sessions to the index, by the key that they were made with."""
        without = self.store.read(repository.sessions_without_code)
        rows = {session_id: code_hash(self.key, session_id) for session_id in without}

        def work(db: Connection) -> None:
            for session_id, hashed in rows.items():
                repository.index_code(db, session_id, hashed)

        if rows:
            self.store.write(work)

    @cached_property
    def key(self) -> bytes:
        self.require_sound()
        return self.key_file.read_bytes()

    def manifest_of(self, row: SessionRow | VersionRow) -> Manifest:
        return self.bundle(row["study_hash"]).manifest

    def bundle(self, study_hash: str) -> Bundle:
        if study_hash not in self.bundles:
            versions = self.store.read(repository.versions)
            folder = next(v["folder"] for v in versions if v["study_hash"] == study_hash)
            bundle = Bundle(Path(folder))
            if bundle.study_hash != study_hash:
                raise ForetellError(f"{folder} contains another study than the one opened. Put the old bundle back.")
            self.bundles[study_hash] = bundle
        return self.bundles[study_hash]

    def find_damaged_bundles(self) -> Iterator[str]:
        """Describe what is missing or changed in the bundles of all versions."""
        for version in self.store.read(repository.versions):
            try:
                yield from Bundle(Path(version["folder"])).find_damage()
            except ForetellError as error:
                yield str(error)

    def find_shown_manifest(self, study: str) -> Manifest:
        """Return the manifest of the version that is open, or else of the one opened last.

        A study that was only simulated or previewed is none that participants know of: `Refusal` (404).
        """
        opened = self.store.read(lambda db: repository.opened_versions_of(db, study))
        if not opened:
            raise self.unknown_study(study)
        return self.manifest_of(max(opened, key=lambda row: (row["state"] == "open", row["opened_at"])))

    def versions(self, study: str) -> list[VersionRow]:
        """Return the versions of a study, the oldest first; raises `Refusal` (404) where it has none."""
        versions = [version for version in self.store.read(repository.versions) if version["name"] == study]
        if not versions:
            raise self.unknown_study(study)
        return versions

    def bundles_of(self, study: str) -> Iterator[Bundle]:
        for version in self.versions(study):
            yield self.bundle(version["study_hash"])

    def require_study(self, study: str) -> None:
        self.versions(study)

    def pseudonym_of(self, study: str, source: str, person: str) -> str:
        """Hash a recruiter's id with the workspace's key: the id is not kept, and cannot be guessed without the key."""
        return hmac.new(self.key, f"{study}\0{source}\0{person}".encode(), "sha256").hexdigest()

    def pseudonyms_of(self, study: str, person: str, first: Source = "link") -> list[str]:
        """Hash an id once for each source: it names the same participant, whichever link they opened."""
        sources = sorted(SOURCES, key=lambda source: source != first)
        return [self.pseudonym_of(study, source, person) for source in sources]

    def unknown_study(self, study: str) -> ForetellError:
        known = sorted({v["name"] for v in self.store.read(repository.versions) if v["state"] == "open"})
        return Refusal(404, f"Study {study!r} is not open. Open: {', '.join(known) or 'none'}.", "refused_unknown")
