"""The only door for the front ends: open a study, take part in it, read what was answered."""

from __future__ import annotations

import hmac
import os
import secrets
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import pandas as pd

from core.errors import ForetellError
from study import participation
from study.answer import Answer, ClientEvent
from study.bundle import Bundle, Manifest, Trial
from study.conditions import CONDITIONS
from study.frames import response_frame
from study.page import page_state, remaining_assets
from study.participation import Refused, session_of_token
from study.store import Connection, Store, repository, responses
from study.store.rows import Row
from study.texts import texts_of

Mode = Literal["live", "preview", "sim"]


@dataclass(frozen=True)
class StudyStatus:
    """One version of a study and how far its collection is.

    Attributes
    ----------
    name, title, study_hash, folder, state
        ``state`` is open, superseded or closed.
    sessions
        ``{mode: {condition: {stage: number}}}``; the condition is "" before it is given.
    slots
        ``{mode: {condition: {state: number}}}``, states open, held and done.
    """

    name: str
    title: str
    study_hash: str
    folder: Path
    state: str
    sessions: dict[str, dict[str, dict[str, int]]]
    slots: dict[str, dict[str, dict[str, int]]]


@dataclass(frozen=True)
class Ack:
    """The answer to an answer: an HTTP status, a sentence, feedback (practice only) and the page's new state."""

    code: int
    message: str
    feedback: str | None
    state: dict[str, Any]


@dataclass(frozen=True)
class SimulatedTrial:
    """What only a simulated person is told of a trial: all of it, her condition's factor, the AI's side."""

    trial: Trial
    shows_saliency: bool
    ai_side: Literal["left", "right"]


class Service:
    """The experiment over one workspace.

    Parameters
    ----------
    home
        Workspace folder, made if missing; the database is ``home/foretell.db`` unless `database` names another URL.
    database
        ``sqlite:////absolute/path.db``.
    clock
        Nanoseconds since 1970.
    """

    def __init__(self, home: Path, database: str | None = None, clock: Callable[[], int] = time.time_ns) -> None:
        self.home = home
        self._clock = clock
        home.mkdir(parents=True, exist_ok=True)
        self._store = Store(database or f"sqlite:///{home / 'foretell.db'}")
        self._bundles: dict[str, Bundle] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Commit what is queued and let go of the database."""
        self._store.close()

    # The researcher

    def open_study(self, bundle_folder: Path, per_condition: int) -> str:
        """Verify a bundle and let new participants take it; its name.

        Opening the same bundle again changes nothing, except that a larger `per_condition` adds places. Another
        bundle of the same name supersedes it for new participants; who has begun goes on with the old one.
        """
        if per_condition < 1:
            raise ForetellError(f"per_condition is {per_condition}. A study needs at least 1 person per condition.")
        bundle = Bundle(bundle_folder.resolve())
        for complaint in bundle.damaged():
            raise ForetellError(complaint)
        manifest = bundle.manifest
        _check(manifest)

        def work(db: Connection) -> None:
            repository.open_version(db, manifest.study_hash, manifest.name, str(bundle.folder), self._clock())
            participation.enlarge(db, manifest, "live", per_condition)

        self._store.write(work)
        self._bundles[manifest.study_hash] = bundle
        return manifest.name

    def close_study(self, study: str) -> None:
        """Let no new participant in; who has begun may finish."""
        if not self._store.write(lambda db: repository.close_version(db, study)):
            raise self._unknown(study)

    def studies(self) -> list[StudyStatus]:
        """Every version ever opened, the oldest first."""
        versions, sessions, slots = self._store.read(
            lambda db: (repository.versions(db), repository.session_counts(db), repository.slot_counts(db))
        )
        return [self._status(version, sessions, slots) for version in versions]

    def responses(self, study: str, modes: Sequence[Mode] = ("live",)) -> pd.DataFrame:
        """Every answered main trial, one row each; columns are described in `study.export.DICTIONARY`.

        Raises
        ------
        ForetellError
            No study of that name was ever opened.
        """
        if not any(version["name"] == study for version in self._store.read(repository.versions)):
            raise self._unknown(study)
        rows = self._store.read(lambda db: responses.main_answers(db, study, modes))
        trials = {
            (study_hash, trial.id): trial
            for study_hash in {row["study_hash"] for row in rows}
            for trial in self._bundle(study_hash).manifest.trials
        }
        return response_frame(rows, trials)

    def verify_chain(self) -> list[str]:
        """One sentence per answer that was changed, removed or inserted after it was recorded; empty is good."""
        return self._store.read(lambda db: list(responses.broken_links(db)))

    def asset(self, study: str, sha256: str) -> Path:
        """Path of a picture of any version of a study; raises `ForetellError` for anything else."""
        for bundle in self._bundles_of(study):
            if sha256 in bundle.manifest.assets:
                return bundle.asset(sha256)
        raise ForetellError(f"Study {study!r} has no such picture.")

    # The participant

    def begin(
        self, study: str, *, mode: Mode = "live", participant: str | None = None, condition: str | None = None
    ) -> str:
        """Open or resume a session and return its token.

        The same `participant` always gets the same session, and the token it had before stops working.
        A preview may fix the condition and takes no place in the allocation.
        """
        version = self._store.read(lambda db: repository.open_version_of(db, study))
        who = self._pseudonym(study, participant) if participant else uuid.uuid4().hex
        token = secrets.token_urlsafe(24)
        known = version["study_hash"] if version else None
        preview = self._preview_place(known, condition) if mode == "preview" else {}

        def work(db: Connection) -> None:
            session = repository.session_of(db, study, mode, who)
            if session is not None:
                self._renew(db, session, token)
            elif known is None:
                raise self._unknown(study)
            else:
                self._new_session(db, study, known, mode, who, token, preview)

        self._store.write(work)
        return token

    def state(self, token: str) -> dict[str, Any]:
        """What the page may know now."""
        return self._store.read(lambda db: self._state(db, token))

    def preload(self, token: str) -> list[str]:
        """Pictures of all trials still to come, in no telling order."""
        return self._store.read(lambda db: remaining_assets(db, session_of_token(db, token)))

    def consent(self, token: str, agreed: bool) -> dict[str, Any]:
        """Agree (and be given a condition) or decline."""

        def work(db: Connection) -> None:
            session = session_of_token(db, token)
            participation.answer_consent(db, session, agreed, self._manifest(session), self._clock())

        self._store.write(work)
        return self.state(token)

    def ready(self, token: str) -> dict[str, Any]:
        """The instructions are read: the trials begin."""
        self._store.write(lambda db: participation.ready(db, session_of_token(db, token), self._clock()))
        return self.state(token)

    def record(self, token: str, answer: Answer) -> Ack:
        """Keep an answer exactly once; see `study.participation.record` for the codes."""
        code, message = self._store.write(
            lambda db: participation.record(db, session_of_token(db, token), answer, self._clock())
        )
        kept = code in (200, 201)

        def reply(db: Connection) -> Ack:
            feedback = self._feedback(db, token, answer.trial_index) if kept else None
            return Ack(code, message, feedback, self._state(db, token))

        return self._store.read(reply)

    def events(self, token: str, events: list[ClientEvent]) -> int:
        """Append what the page noticed; sending the same again changes nothing. Returns how many were new."""
        return self._store.write(
            lambda db: participation.add_events(db, session_of_token(db, token), events, self._clock())
        )

    def finish(self, token: str) -> dict[str, Any]:
        """End the session; the state then carries the completion code."""
        self._store.write(lambda db: participation.finish(db, session_of_token(db, token), self._clock()))
        return self.state(token)

    def simulated_trial(self, token: str, trial_index: int) -> SimulatedTrial:
        """A planned trial with the AI's answer; refused to everybody but simulated people."""

        def work(db: Connection) -> SimulatedTrial:
            session = session_of_token(db, token)
            if session["mode"] != "sim":
                raise Refused(403, "Only simulated people are told the AI's answer.")
            (planned,) = repository.planned(db, session["session_id"], trial_index, 1)
            manifest = self._manifest(session)
            trial = next(t for t in (*manifest.practice, *manifest.trials) if t.id == planned["item_id"])
            side: Literal["left", "right"] = "left" if trial.ai_choice == planned["left_is"] else "right"
            return SimulatedTrial(trial, CONDITIONS[session["condition"]].shows_saliency, side)

        return self._store.read(work)

    # Inside

    def _state(self, db: Connection, token: str) -> dict[str, Any]:
        session = session_of_token(db, token)
        return page_state(db, session, self._manifest(session))

    def _feedback(self, db: Connection, token: str, trial_index: int) -> str | None:
        """What the AI said, for practice trials only."""
        session = session_of_token(db, token)
        if trial_index >= session["practice"]:
            return None
        manifest = self._manifest(session)
        return texts_of(manifest)["feedback"].replace("{name}", manifest.practice[trial_index].target)

    def _renew(self, db: Connection, session: Row, token: str) -> None:
        resumed = {"token_hash": participation.token_hash(token), "n_resumes": session["n_resumes"] + 1}
        repository.change_session(db, session["session_id"], {**resumed, "last_seen": self._clock()})

    def _new_session(
        self, db: Connection, study: str, study_hash: str, mode: Mode, who: str, token: str, preview: dict[str, Any]
    ) -> None:
        now = self._clock()
        manifest = self._bundle(study_hash).manifest
        if mode == "live" and not repository.has_free_slot(db, study_hash, mode, now):
            raise Refused(410, texts_of(manifest)["full"])
        row = {
            "session_id": uuid.uuid4().hex,
            "study": study,
            "study_hash": study_hash,
            "participant_id": who,
            "mode": mode,
            "token_hash": participation.token_hash(token),
            "stage": "consent",
            "practice": len(manifest.practice),
            "main": len(manifest.trials),
            "started_at": now,
            "last_seen": now,
        }
        repository.add_session(db, {**row, **preview})

    def _preview_place(self, study_hash: str | None, condition: str | None) -> dict[str, Any]:
        if study_hash is None:
            return {}
        manifest = self._bundle(study_hash).manifest
        name = condition or secrets.choice(manifest.conditions)
        if name not in manifest.conditions:
            known = ", ".join(manifest.conditions)
            raise ForetellError(f"Study {manifest.name!r} has no condition {name!r}. It has: {known}.")
        return {"condition": name, "side_flip": 0, "order_seed": manifest.seed % 2**31}

    def _pseudonym(self, study: str, participant: str) -> str:
        """Keyed hash of a recruiter's id: the id is not kept, and cannot be guessed without the key."""
        return hmac.new(self._key, f"{study}\0{participant}".encode(), "sha256").hexdigest()

    @cached_property
    def _key(self) -> bytes:
        path = self.home / "participants.key"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return path.read_bytes()
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(32))
        return path.read_bytes()

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

    def _bundles_of(self, study: str) -> Iterator[Bundle]:
        for version in self._store.read(repository.versions):
            if version["name"] == study:
                yield self._bundle(version["study_hash"])

    def _unknown(self, study: str) -> ForetellError:
        known = sorted({v["name"] for v in self._store.read(repository.versions) if v["state"] == "open"})
        return Refused(404, f"Study {study!r} is not open. Open: {', '.join(known) or 'none'}.")

    def _status(self, version: Row, sessions: list[Row], slots: list[Row]) -> StudyStatus:
        study_hash, folder = version["study_hash"], Path(version["folder"])
        try:
            title = texts_of(self._bundle(study_hash).manifest)["title"]
        except ForetellError as error:
            title = str(error)
        counts = [_nested([c for c in rows if c["study_hash"] == study_hash], key)
                  for rows, key in ((sessions, "stage"), (slots, "state"))]  # fmt: skip
        return StudyStatus(version["name"], title, study_hash, folder, version["state"], *counts)


def _nested(rows: list[Row], key: str) -> dict[str, dict[str, dict[str, int]]]:
    """``{mode: {condition: {key: n}}}``."""
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for row in rows:
        counts.setdefault(row["mode"], {}).setdefault(row["condition"] or "", {})[row[key]] = row["n"]
    return counts


def _check(manifest: Manifest) -> None:
    """What the bundle's own format does not promise but a running study needs."""
    for name in manifest.conditions:
        CONDITIONS[name]
    if not manifest.trials:
        raise ForetellError(f"Study {manifest.name!r} has no trials. Build it again.")
    for trial in (*manifest.practice, *manifest.trials):
        if len({*trial.options}) != 2 or {trial.target, trial.alternative} != {*trial.options}:
            raise ForetellError(
                f"Trial {trial.id!r}: its options {trial.options} are not the AI's answer {trial.target!r} and the "
                f"alternative {trial.alternative!r}. Build the study again."
            )
