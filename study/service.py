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
from typing import Any, Literal, Self, TypeVar

import pandas as pd

from core.errors import ForetellError
from study import ending, entrance, lease, outcomes, participation, recruiting
from study.answer import Answer, CheckAnswers, ClientEvent, Device, Filled, Recruit
from study.bundle import Bundle, Manifest, Trial
from study.catch import catch_trials
from study.conditions import CONDITIONS
from study.frames import response_frame
from study.integrity import faults, unplayable
from study.monitor import Monitor, look
from study.page import entry, page_state, remaining_assets
from study.participation import Refused, session_of_token
from study.persons import person_frame
from study.procedure import Procedure, procedure_of
from study.status import StudyStatus, nested
from study.store import Connection, Store, audit, identities, repository, responses
from study.store.rows import Row
from study.texts import texts_of

Mode = Literal["live", "preview", "sim"]
R = TypeVar("R")
DAY_NS = 24 * 3600 * 10**9


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
        ``sqlite:////absolute/path.db``. Recruiters' ids are in ``home/identity.db``, whatever it is.
    clock
        Nanoseconds since 1970.
    """

    def __init__(self, home: Path, database: str | None = None, clock: Callable[[], int] = time.time_ns) -> None:
        self.home = home
        self._clock = clock
        home.mkdir(parents=True, exist_ok=True)
        self._store = Store(database or f"sqlite:///{home / 'foretell.db'}")
        self._identities = Store(f"sqlite:///{home / 'identity.db'}", identities.MIGRATIONS)
        self._bundles: dict[str, Bundle] = {}
        self.erase_identities()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Commit what is queued and let go of the database."""
        self._store.close()
        self._identities.close()

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
        for complaint in unplayable(manifest):
            raise ForetellError(complaint)

        def work(db: Connection) -> None:
            repository.open_version(db, manifest.study_hash, manifest.name, str(bundle.folder), self._clock())
            entrance.enlarge(db, manifest, "live", per_condition)
            audit.append(db, self._clock(), "researcher", "opened", {"study_hash": manifest.study_hash})

        self._store.write(work)
        self._bundles[manifest.study_hash] = bundle
        return manifest.name

    def close_study(self, study: str) -> None:
        """Let no new participant in; who has begun may finish."""

        def work(db: Connection) -> int:
            audit.append(db, self._clock(), "researcher", "closed", {"study": study})
            return repository.close_version(db, study)

        if not self._store.write(work):
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
        self._known(study)
        rows = self._store.read(lambda db: responses.main_answers(db, study, modes))
        trials = {
            (study_hash, trial.id): trial
            for study_hash in {row["study_hash"] for row in rows}
            for trial in self._bundle(study_hash).manifest.trials
        }
        return response_frame(rows, trials)

    def persons(self, study: str, modes: Sequence[Mode] = ("live",)) -> pd.DataFrame:
        """Every person of a study, one row each; columns are described in `study.export.PERSONS`."""
        self._known(study)
        return self._store.read(lambda db: person_frame(db, repository.sessions(db, study, modes), self._manifest))

    def monitor(self, study: str) -> Monitor:
        """How a collection goes; no outcome by condition."""
        self._known(study)
        return self._store.read(lambda db: look(db, study, self._manifest, self.home, self._clock()))

    def unblind(self, study: str, reason: str) -> pd.DataFrame:
        """Outcomes by condition before the end; that they were looked at, and why, goes into the audit trail first."""
        self._known(study)
        self._store.write(lambda db: outcomes.note(db, study, reason, self._clock()))
        return outcomes.table(self.responses(study), self.persons(study))

    def verify_chain(self) -> list[str]:
        """One sentence per answer that was changed, removed or inserted after it was recorded; empty is good."""
        return self._store.read(lambda db: list(responses.broken_links(db)))

    def verify(self) -> list[str]:
        """What is wrong with the database, the first wrong row first: chain, plans, counts, places, audit."""
        return self._store.read(lambda db: list(faults(db, self._manifest)))

    def bonus(self, study: str, batch: int | None = None) -> recruiting.Batch:
        """The bonuses not handed over yet, marked as handed over by this; or an earlier batch again."""
        self._known(study)
        people = self._identities.read(lambda db: identities.of_study(db, study))
        return self._store.write(lambda db: recruiting.bonus_batch(db, study, people, batch, self._clock()))

    def reconcile(self, study: str, statuses: pd.DataFrame) -> pd.DataFrame:
        """Compare a recruiter's list with what is here, free the places of who went back, and show what differs."""
        self._known(study)
        people = self._identities.read(lambda db: identities.of_study(db, study))
        return self._store.write(
            lambda db: recruiting.reconcile(db, study, people, statuses, self._manifest, self._clock())
        )

    def erase_identities(self) -> int:
        """Forget the recruiters' ids whose time is over; how many."""
        erased = self._identities.write(lambda db: identities.erase_due(db, self._clock()))
        if erased:
            detail = {"people": erased}
            self._store.write(lambda db: audit.append(db, self._clock(), "server", "erased identities", detail))
        return erased

    def asset(self, study: str, sha256: str) -> Path:
        """Path of a picture of any version of a study; raises `ForetellError` for anything else."""
        for bundle in self._bundles_of(study):
            if sha256 in bundle.manifest.assets:
                return bundle.asset(sha256)
        raise ForetellError(f"Study {study!r} has no such picture.")

    # The participant

    def entry(self, study: str) -> dict[str, Any]:
        """What the page needs before anybody takes part; nothing is kept."""
        versions = [v for v in self._store.read(repository.versions) if v["name"] == study]
        if not versions:
            raise self._unknown(study)
        newest = max(versions, key=lambda version: (version["state"] == "open", version["opened_at"]))
        return entry(self._bundle(newest["study_hash"]).manifest)

    def begin(
        self,
        study: str,
        *,
        mode: Mode = "live",
        participant: str | None = None,
        condition: str | None = None,
        recruit: Recruit | None = None,
    ) -> str:
        """Open or resume a session and return its token.

        The same `participant`, or the same `recruit`, always gets the same session, and the token it had before
        stops working. A preview may fix the condition and takes no place in the allocation.
        """
        version = self._store.read(lambda db: repository.open_version_of(db, study))
        named = f"{recruit.source}\0{recruit.person}" if recruit else participant
        who = self._pseudonym(study, named) if named else uuid.uuid4().hex
        token = secrets.token_urlsafe(24)
        known = version["study_hash"] if version else None
        preview = self._preview_place(known, condition) if mode == "preview" else {}

        def work(db: Connection) -> str:
            session = repository.session_of(db, study, mode, who)
            if session is not None:
                self._renew(db, session, token)
                return str(session["study_hash"])
            if known is None:
                raise self._unknown(study)
            self._new_session(db, study, known, mode, who, token, preview)
            return str(known)

        study_hash = self._store.write(work)
        if recruit is not None and mode == "live":
            self._identify(study, study_hash, who, recruit)
        return token

    def state(self, token: str, tab: str | None = None) -> dict[str, Any]:
        """What the page may know now."""
        self._store.write(lambda db: self._admitted(db, token, tab))
        return self._fresh(token)

    def take_over(self, token: str, tab: str) -> dict[str, Any]:
        """Go on in this tab; the one that had the session may not answer any more."""
        self._store.write(lambda db: self._admitted(db, token, tab, take=True))
        return self._fresh(token)

    def preload(self, token: str) -> list[str]:
        """Pictures of the trials up to the next break, in no telling order."""

        def work(db: Connection) -> list[str]:
            session = session_of_token(db, token)
            return remaining_assets(db, session, self._manifest(session))

        return self._store.read(work)

    def consent(self, token: str, agreed: bool, device: Device | None = None, tab: str | None = None) -> dict[str, Any]:
        """Agree or decline."""
        self._act(token, tab, entrance.answer_consent, agreed, device)
        if not agreed:
            self._forget(token)
        return self._fresh(token)

    def ready(self, token: str, stage: str = "instructions", tab: str | None = None) -> dict[str, Any]:
        """The page of a stage, ``instructions`` or ``example``, is read."""
        self._act(token, tab, entrance.seen if stage == "example" else entrance.read)
        return self._fresh(token)

    def check(self, token: str, sent: CheckAnswers, tab: str | None = None) -> dict[str, Any]:
        """One try of the comprehension check; who passes is given a condition."""
        self._act(token, tab, entrance.answer_check, sent)
        return self._fresh(token)

    def record(self, token: str, answer: Answer, tab: str | None = None) -> Ack:
        """Keep an answer exactly once; see `study.participation.record` for the codes."""
        code, message = self._act(token, tab, participation.record, answer)
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

    def fill(self, token: str, sent: Filled, tab: str | None = None) -> dict[str, Any]:
        """Keep the questionnaire."""
        self._act(token, tab, ending.fill, sent)
        return self._fresh(token)

    def finish(self, token: str, tab: str | None = None) -> dict[str, Any]:
        """End the session; the state then carries the completion code."""
        self._act(token, tab, ending.finish)
        return self._fresh(token)

    def withdraw(self, code: str) -> dict[str, Any]:
        """Erase everything the holder of a private code answered; what her page then shows."""
        wanted = code.strip().upper()

        def work(db: Connection) -> dict[str, Any]:
            for session in repository.every_session(db):
                if hmac.compare_digest(ending.withdrawal_code(self._key, session["session_id"]), wanted):
                    manifest = self._manifest(session)
                    ending.withdraw(db, session, manifest, self._clock())
                    return page_state(db, repository.session_by_id(db, session["session_id"]), manifest)
            raise Refused(404, "No participation has this code. Please check it.")

        return self._store.write(work)

    def simulated_trial(self, token: str, trial_index: int) -> SimulatedTrial:
        """A planned trial with the AI's answer; refused to everybody but simulated people."""

        def work(db: Connection) -> SimulatedTrial:
            session = session_of_token(db, token)
            if session["mode"] != "sim":
                raise Refused(403, "Only simulated people are told the AI's answer.")
            (planned,) = repository.planned(db, session["session_id"], trial_index, 1)
            manifest = self._manifest(session)
            trials = (*manifest.practice, *manifest.trials, *catch_trials(manifest))
            trial = next(t for t in trials if t.id == planned["item_id"])
            side: Literal["left", "right"] = "left" if trial.ai_choice == planned["left_is"] else "right"
            condition = CONDITIONS[session["condition"]]
            return SimulatedTrial(condition.read(trial), condition.shows_saliency, side)

        return self._store.read(work)

    def simulated_procedure(self, token: str) -> Procedure:
        """What a simulated person needs to pass; refused to everybody else."""
        session = self._store.read(lambda db: session_of_token(db, token))
        if session["mode"] != "sim":
            raise Refused(403, "Only simulated people are told the answers.")
        return procedure_of(self._manifest(session))

    # Inside

    def _act(self, token: str, tab: str | None, work: Callable[..., R], *sent: Any) -> R:
        """Do something in a session's name, in the writer's transaction."""

        def run(db: Connection) -> R:
            session = self._admitted(db, token, tab)
            return work(db, session, self._manifest(session), *sent, self._clock())

        return self._store.write(run)

    def _admitted(self, db: Connection, token: str, tab: str | None, *, take: bool = False) -> Row:
        """The session of a token, if this tab may work in it; ended here if its time is over."""
        session = session_of_token(db, token)
        lease.admit(db, session, tab, self._clock(), take=take)
        ended = ending.expire(db, session, self._manifest(session), self._clock())
        return session_of_token(db, token) if ended else session

    def _fresh(self, token: str) -> dict[str, Any]:
        return self._store.read(lambda db: self._state(db, token))

    def _state(self, db: Connection, token: str) -> dict[str, Any]:
        session = session_of_token(db, token)
        state = page_state(db, session, self._manifest(session))
        if session["stage"] not in ("consent", "declined", "withdrawn"):
            state["withdrawal_code"] = ending.withdrawal_code(self._key, session["session_id"])
        return state

    def _identify(self, study: str, study_hash: str, who: str, recruit: Recruit) -> None:
        """Keep a recruiter's id of a person, in its own file and for its own time."""
        days = procedure_of(self._bundle(study_hash).manifest).recruiter.retention_days
        now = self._clock()
        row = {
            "participant_id": who,
            "study": study,
            "source": recruit.source,
            "ext_person": recruit.person,
            "ext_study": recruit.study,
            "ext_session": recruit.session,
            "created_at": now,
            "erase_after": now + days * DAY_NS,
        }
        self._identities.write(lambda db: identities.add(db, row))

    def _forget(self, token: str) -> None:
        """Who declines leaves no id."""
        who = self._store.read(lambda db: session_of_token(db, token))["participant_id"]
        self._identities.write(lambda db: identities.erase(db, who))

    def _feedback(self, db: Connection, token: str, trial_index: int) -> str | None:
        """What the AI said, for practice trials only."""
        session = session_of_token(db, token)
        if trial_index >= session["practice"]:
            return None
        manifest = self._manifest(session)
        return texts_of(manifest)["feedback"].replace("{name}", manifest.practice[trial_index].target)

    def _renew(self, db: Connection, session: Row, token: str) -> None:
        resumed = {"token_hash": participation.token_hash(token), "n_resumes": session["n_resumes"] + 1, "tab_id": None}
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
            "main": len(manifest.trials) + len(catch_trials(manifest)),
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

    def _known(self, study: str) -> None:
        if not any(version["name"] == study for version in self._store.read(repository.versions)):
            raise self._unknown(study)

    def _unknown(self, study: str) -> ForetellError:
        known = sorted({v["name"] for v in self._store.read(repository.versions) if v["state"] == "open"})
        return Refused(404, f"Study {study!r} is not open. Open: {', '.join(known) or 'none'}.")

    def _status(self, version: Row, sessions: list[Row], slots: list[Row]) -> StudyStatus:
        study_hash, folder = version["study_hash"], Path(version["folder"])
        try:
            title = texts_of(self._bundle(study_hash).manifest)["title"]
        except ForetellError as error:
            title = str(error)
        counts = [nested([c for c in rows if c["study_hash"] == study_hash], key)
                  for rows, key in ((sessions, "stage"), (slots, "state"))]  # fmt: skip
        return StudyStatus(version["name"], title, study_hash, folder, version["state"], *counts)
