"""An open workspace: its databases, its bundles, its key; what both sides of the service stand on."""

from __future__ import annotations

import contextlib
import copy
import hmac
import os
import secrets
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from core.errors import ForetellError
from study.bundle import Bundle, Manifest
from study.participation.ending import code_hash
from study.participation.refusals import Refused
from study.store import Connection, Store, StoreError, audit, identities, repository, timemark, witness
from study.store.rows import Row
from study.workspace.files import close_to_others
from study.workspace.workspace import database as default_database

Mode = Literal["live", "preview", "sim"]


class Opened:
    """The stores of one workspace and the bundles its studies were opened from; see `study.service.Service`."""

    def __init__(self, home: Path, database: str | None = None, clock: Callable[[], int] = time.time_ns) -> None:
        self.home = home
        self._clock = clock
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.database = database or default_database(home)
        for url in (self.database, f"sqlite:///{home / 'identity.db'}"):
            if url.startswith("sqlite:///"):
                close_to_others(Path(url.removeprefix("sqlite:///")))
        self._store = Store(self.database)
        beside = f"sqlite:///{home / 'identity.db'}" if self.database.startswith("sqlite") else self.database
        self._identities = Store(beside, identities.MIGRATIONS, "identity")
        self._bundles: dict[str, Bundle] = {}
        self.actor = audit.RESEARCHER
        self._marked = 0
        self._index_codes()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def acting_as(self, person: str) -> Self:
        """The same service; what is done by it stands under this name in the audit trail."""
        other = copy.copy(self)
        other.actor = person
        return other

    def close(self) -> None:
        """Commit what is queued and let go of the database."""
        with contextlib.suppress(StoreError):
            self._keep_ends()
        self._store.close()
        self._identities.close()

    def erase_identities(self) -> int:
        """Forget the recruiters' ids whose time is over; how many."""
        until = self._store.write(self._trusted)
        erased = self._identities.write(lambda db: identities.erase_due(db, until))
        self._store.forget_erased()
        if erased:
            self._identities.erase(lambda _: None)
            detail = {"people": erased}
            self._store.write(lambda db: audit.append(db, self._clock(), "server", "erased identities", detail))
        return erased

    def keep_watch(self) -> None:
        """Do what a running server does every few seconds: keep the chains' ends, move the time on, empty the log."""
        self._keep_ends()
        if self._clock() - self._marked >= timemark.STEP_NS:
            self._store.write(self._trusted)
            self._marked = self._clock()
            self._store.forget_erased()
            self._identities.forget_erased()

    def _keep_ends(self) -> None:
        """Keep the chains' ends outside the database, unless it lacks what was kept before: that is evidence."""
        ends, faults = self._store.read(lambda db: (witness.ends_of(db), self._lost(db)))
        if not faults and ends != witness.read(self.ends_file):
            witness.keep(self.ends_file, ends)

    def _lost(self, db: Connection) -> list[str]:
        kept = witness.read(self.ends_file)
        return [] if kept is None else list(witness.missing(db, kept))

    @property
    def ends_file(self) -> Path:
        """Where the chains' ends are kept: ``foretell.ends`` next to ``foretell.db``."""
        url = self.database
        return Path(url.removeprefix("sqlite:///")).with_suffix(".ends") if url.startswith("sqlite") else (
            self.home / "foretell.ends"
        )  # fmt: skip

    def _trusted(self, db: Connection) -> int:
        """The time by which participations end and ids are erased: see `study.store.timemark`."""
        return timemark.trusted(db, self._clock())

    def now_ms(self) -> float:
        """The server's clock, ms since 1970: pages measure how far theirs is from it."""
        return self._clock() / 1e6

    def asset(self, study: str, sha256: str) -> Path:
        """Path of a picture of any version of a study; raises `ForetellError` for anything else."""
        for bundle in self._bundles_of(study):
            if sha256 in bundle.manifest.assets:
                return bundle.asset(sha256)
        raise ForetellError(f"Study {study!r} has no such picture.")

    def key_file(self) -> Path:
        """The key of pseudonyms and withdrawal codes, made where it is missing."""
        path = self._key_path
        if not path.exists():
            # Written whole before it has its name: another process that starts now must not read half of it.
            made = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
            with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_bytes(32))
            with contextlib.suppress(FileExistsError):
                os.link(made, path)
            made.unlink()
        return path

    def _index_codes(self) -> None:
        """Index the private codes of sessions of an earlier version, by the key that they were made with."""
        without = self._store.read(repository.sessions_without_code) if self._key_path.exists() else []
        rows = {session_id: code_hash(self._key, session_id) for session_id in without}

        def work(db: Connection) -> None:
            for session_id, hashed in rows.items():
                repository.change_session(db, session_id, {"code_hash": hashed})

        if rows:
            self._store.write(work)

    @property
    def _key_path(self) -> Path:
        return self.home / "participants.key"

    @cached_property
    def _key(self) -> bytes:
        return self.key_file().read_bytes()

    def _manifest(self, session: Row) -> Manifest:
        return self._bundle(session["study_hash"]).manifest

    def _bundle(self, study_hash: str) -> Bundle:
        if study_hash not in self._bundles:
            versions = self._store.read(repository.versions)
            folder = next(v["folder"] for v in versions if v["study_hash"] == study_hash)
            bundle = Bundle(Path(folder))
            if bundle.study_hash != study_hash:
                raise ForetellError(f"{folder} holds another study than the one opened. Put the old bundle back.")
            self._bundles[study_hash] = bundle
        return self._bundles[study_hash]

    def _newest(self, study: str) -> Manifest:
        """Of the version opened last."""
        return self._manifest(self._versions(study)[-1])

    def _shown(self, study: str) -> Manifest:
        """Of the version that is open, or else of the one opened last."""
        return self._manifest(max(self._versions(study), key=lambda row: (row["state"] == "open", row["opened_at"])))

    def _versions(self, study: str) -> list[Row]:
        """The versions of a study, the oldest first; raises `Refused` (404) where it has none."""
        versions = [version for version in self._store.read(repository.versions) if version["name"] == study]
        if not versions:
            raise self._unknown(study)
        return versions

    def _bundles_of(self, study: str) -> Iterator[Bundle]:
        for version in self._versions(study):
            yield self._bundle(version["study_hash"])

    def _known(self, study: str) -> None:
        self._versions(study)

    def _pseudonym_of(self, study: str, source: str, person: str) -> str:
        """Keyed hash of a recruiter's id: the id is not kept, and cannot be guessed without the key."""
        return hmac.new(self._key, f"{study}\0{source}\0{person}".encode(), "sha256").hexdigest()

    def _unknown(self, study: str) -> ForetellError:
        known = sorted({v["name"] for v in self._store.read(repository.versions) if v["state"] == "open"})
        return Refused(404, f"Study {study!r} is not open. Open: {', '.join(known) or 'none'}.", "refused_unknown")
