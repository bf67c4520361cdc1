"""The participant's side of the service: come in, take part, leave."""

from __future__ import annotations

import hmac
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from core.errors import ForetellError
from study import disk
from study.bundle import Trial
from study.conditions import CONDITIONS
from study.opened import Mode, Opened
from study.participation import answering, ending, entrance, lease
from study.participation.answer import Answer, CheckAnswers, ClientEvent, Device, Filled, Recruit
from study.participation.answering import session_of_token
from study.participation.catch import catch_trials
from study.participation.page import entry, page_state, remaining_assets
from study.participation.receipt import receipt
from study.participation.refusals import Refused
from study.procedure import Procedure, procedure_of
from study.store import Connection, identities, repository
from study.store.rows import Row
from study.texts import texts_of

R = TypeVar("R")
WITH_RECEIPT = ("questionnaire", "debrief", "done", "expired")
"""After the trials: a page whose connection fails at the very end has it already."""
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


class Participant(Opened):
    """What the participant's page may do, in the name of a token."""

    def entry(self, study: str) -> dict[str, Any]:
        """What the page needs before anybody takes part; nothing is kept."""
        return entry(self._shown(study))

    def words(self, study: str) -> tuple[str, dict[str, str]]:
        """Language and texts of a study; raises `Refused` (404) where there is none."""
        manifest = self._shown(study)
        return procedure_of(manifest).language, texts_of(manifest)

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
        stops working. A preview may fix the condition and takes no place in the allocation. Simulated people need no
        open study.
        """
        of = repository.newest_version_of if mode == "sim" else repository.open_version_of
        version = self._store.read(lambda db: of(db, study))
        named = f"{recruit.source}\0{recruit.person}" if recruit else participant
        who = self._pseudonym(study, named) if named else uuid.uuid4().hex
        token = secrets.token_urlsafe(24)
        known = version["study_hash"] if version else None
        preview = self._preview_place(known, condition) if mode == "preview" else {}

        def work(db: Connection) -> None:
            session = repository.session_of(db, study, mode, who)
            if session is not None:
                return self._renew(db, session, token)
            if version is None:
                raise self._closed(study)
            self._new_session(db, version, mode, who, token, preview)

        self._store.write(work)
        if recruit is not None and mode == "live":
            self._identify(token, recruit)
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
        self._remember(token) if agreed else self._forget(token)
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
        """Keep an answer exactly once; see `study.participation.answering.record` for the codes."""
        code, message = self._act(token, tab, answering.record, answer)
        kept = code in (200, 201)

        def reply(db: Connection) -> Ack:
            session = session_of_token(db, token)
            feedback = self._feedback(session, answer.trial_index) if kept else None
            return Ack(code, message, feedback, self._state(db, session))

        return self._store.read(reply)

    def events(self, token: str, events: list[ClientEvent]) -> int:
        """Append what the page noticed; sending the same again changes nothing. Returns how many were new."""
        return self._store.write(
            lambda db: answering.add_events(db, session_of_token(db, token), events, self._clock())
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
        wanted = code.strip().upper().encode()
        # Looked for outside the writer: codes that somebody tries must not hold up those who answer.
        everybody = [session["session_id"] for session in self._store.read(repository.every_session)]
        codes = ((found, ending.withdrawal_code(self._key, found).encode()) for found in everybody)
        mine = next((found for found, known in codes if hmac.compare_digest(known, wanted)), None)
        if mine is None:
            raise Refused(404, "No participation has this code.", "refused_code")

        def work(db: Connection) -> dict[str, Any]:
            session = repository.session_by_id(db, mine)
            manifest = self._manifest(session)
            ending.withdraw(db, session, manifest, self._clock())
            return page_state(db, repository.session_by_id(db, mine), manifest)

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
        return self._store.read(lambda db: self._state(db, session_of_token(db, token)))

    def _state(self, db: Connection, session: Row) -> dict[str, Any]:
        state = page_state(db, session, self._manifest(session))
        if session["stage"] not in ("consent", "declined", "withdrawn"):
            state["withdrawal_code"] = ending.withdrawal_code(self._key, session["session_id"])
        if session["stage"] in WITH_RECEIPT:
            state["receipt"] = receipt(db, self._key, session)
        return state

    def _identify(self, token: str, recruit: Recruit) -> None:
        """Keep a recruiter's id of a person, in its own file: for a day, until she agrees. Who declined leaves none."""
        session = self._store.read(lambda db: session_of_token(db, token))
        if session["stage"] == "declined":
            return
        now = self._clock()
        row = {
            "participant_id": session["participant_id"],
            "study": session["study"],
            "source": recruit.source,
            "ext_person": recruit.person,
            "ext_study": recruit.study,
            "ext_session": recruit.session,
            "created_at": now,
            "erase_after": self._kept_until(session) or now + DAY_NS,
        }
        self._identities.write(lambda db: identities.add(db, row))

    def _remember(self, token: str) -> None:
        """Who agrees is known to the recruiter for as long as the study says."""
        session = self._store.read(lambda db: session_of_token(db, token))
        until = self._kept_until(session)
        if until is not None:
            self._identities.write(lambda db: identities.keep(db, session["participant_id"], until))

    def _kept_until(self, session: Row) -> int | None:
        """When the id of somebody who agreed is erased; None before the consent."""
        days = procedure_of(self._manifest(session)).recruiter.retention_days
        return None if session["agreed_at"] is None else int(session["agreed_at"]) + days * DAY_NS

    def _forget(self, token: str) -> None:
        """Who declines leaves no id."""
        who = self._store.read(lambda db: session_of_token(db, token))["participant_id"]
        self._identities.write(lambda db: identities.erase(db, who))

    def _feedback(self, session: Row, trial_index: int) -> str | None:
        """What the AI said, for practice trials only."""
        if trial_index >= session["practice"]:
            return None
        manifest = self._manifest(session)
        return texts_of(manifest)["feedback"].replace("{name}", manifest.practice[trial_index].target)

    def _renew(self, db: Connection, session: Row, token: str) -> None:
        resumed = {"token_hash": answering.token_hash(token), "n_resumes": session["n_resumes"] + 1, "tab_id": None}
        repository.change_session(db, session["session_id"], {**resumed, "last_seen": self._clock()})

    def _new_session(
        self, db: Connection, version: Row, mode: Mode, who: str, token: str, preview: dict[str, Any]
    ) -> None:
        now, study_hash = self._clock(), version["study_hash"]
        manifest = self._bundle(study_hash).manifest
        if mode == "live":
            self._let_in(db, version, texts_of(manifest), now)
        row = {
            "session_id": uuid.uuid4().hex,
            "study": version["name"],
            "study_hash": study_hash,
            "participant_id": who,
            "mode": mode,
            "token_hash": answering.token_hash(token),
            "stage": "consent",
            "practice": len(manifest.practice),
            "main": len(manifest.trials) + len(catch_trials(manifest)),
            "started_at": now,
            "last_seen": now,
        }
        repository.add_session(db, {**row, **preview})

    def _let_in(self, db: Connection, version: Row, texts: dict[str, str], now: int) -> None:
        """Refuse a newcomer to a study that is paused, or full, or about to fill its disk."""
        if version["paused"] or disk.is_low(self.home):
            raise Refused(410, texts["paused"], "paused")
        if not repository.has_free_slot(db, version["study_hash"], "live", now):
            raise Refused(410, texts["full"], "full")

    def _closed(self, study: str) -> ForetellError:
        """What somebody new to a study that was open once is told; of any other, that there is none."""
        try:
            return Refused(410, texts_of(self._shown(study))["closed"], "closed")
        except Refused as unknown:
            return unknown

    def _preview_place(self, study_hash: str | None, condition: str | None) -> dict[str, Any]:
        if study_hash is None:
            return {}
        manifest = self._bundle(study_hash).manifest
        name = condition or secrets.choice(manifest.conditions)
        if name not in manifest.conditions:
            known = ", ".join(manifest.conditions)
            raise Refused(404, f"Study {manifest.name!r} has no condition {name!r}. It has: {known}.", "refused_link")
        return {"condition": name, "side_flip": 0, "order_seed": manifest.seed % 2**31}

    def _pseudonym(self, study: str, participant: str) -> str:
        """Keyed hash of a recruiter's id: the id is not kept, and cannot be guessed without the key."""
        return hmac.new(self._key, f"{study}\0{participant}".encode(), "sha256").hexdigest()
