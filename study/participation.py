"""What happens inside the writer's transaction when a participant does something."""

from __future__ import annotations

import hashlib
import json
import secrets
import uuid
from dataclasses import asdict
from typing import Any

from core.errors import ForetellError
from study.allocation import blocks, mode_seed
from study.answer import Answer, ClientEvent
from study.bundle import Manifest, canonical
from study.page import progress_of
from study.screens import plan
from study.session import ENDED, IllegalStep, Progress, step
from study.store import Connection, repository, responses
from study.store.rows import Row
from study.texts import LANGUAGE, texts_of

HOLD_NS = 2 * 3600 * 10**9
"""A slot is kept this long for the person who has it; then another may have it (the first may still finish)."""

_CODE_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"


class Refused(ForetellError):
    """A request that cannot be granted; `code` is the HTTP status that says why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def session_of_token(db: Connection, token: str) -> Row:
    """The session of a token; raises `Refused` (401) for one that is unknown or was replaced."""
    session = repository.session_by_token(db, token_hash(token))
    if session is None:
        raise Refused(401, "This page is no longer valid: the study was opened again elsewhere. Continue there.")
    return session


def token_hash(token: str) -> str:
    """Only this is stored: who reads the database cannot take over a session."""
    return hashlib.sha256(token.encode()).hexdigest()


def answer_consent(db: Connection, session: Row, agreed: bool, manifest: Manifest, now: int) -> None:
    """Record the consent; who agrees is given a slot and a plan in the same transaction."""
    progress = progress_of(session)
    if progress.stage in (("instructions", "practice", "main") if agreed else ("declined",)):
        return  # the same answer again: a retry
    moved = _stepped(progress, "agree" if agreed else "decline")
    _add_consent(db, session, agreed, manifest, now)
    if agreed:
        place = _claim(db, session, manifest, now)
        if place is None:
            moved = _stepped(progress, "full")
        else:
            _add_plan(db, session["session_id"], manifest, place)
            repository.change_session(db, session["session_id"], place)
    _move(db, session, moved, now)


def ready(db: Connection, session: Row, now: int) -> None:
    """The instructions are read."""
    if session["stage"] != "practice" and not (session["stage"] == "main" and session["practice"] == 0):
        _move(db, session, _stepped(progress_of(session), "ready"), now)


def record(db: Connection, session: Row, answer: Answer, now: int) -> tuple[int, str]:
    """Keep an answer exactly once.

    Returns
    -------
    (int, str)
        201 kept; 200 kept before (a retry); 409 the trial has another answer, which stands, and this one went to
        ``response_conflict``; 410 the session ended; 425 not the current trial. And a sentence.
    """
    known = responses.answer_to(db, session["session_id"], answer.trial_index)
    if known is not None and known["attempt_id"] == answer.attempt_id:
        return 200, "This answer was kept before."
    if known is not None or responses.answer_of_attempt(db, answer.attempt_id) is not None:
        _add_conflict(db, session, answer, now)
        return 409, "This question was answered before; the first answer stands."
    if session["stage"] in ENDED:
        return 410, "This session has ended."
    if session["stage"] not in ("practice", "main") or answer.trial_index != session["position"]:
        return 425, "This is not the current question."
    if (answer.input == "sim") != (session["mode"] == "sim"):
        return 422, "Only simulated people answer by 'sim', and they always do."
    _append(db, session, answer, now)
    _move(db, session, step(progress_of(session), "answer"), now)
    return 201, "Saved."


def add_events(db: Connection, session: Row, events: list[ClientEvent], now: int) -> int:
    """Append what the page noticed; events known already are skipped. Returns how many were new."""
    rows = [
        {
            **event.model_dump(exclude={"payload"}),
            "session_id": session["session_id"],
            "received_at": now,
            "payload_json": canonical(event.payload).decode(),
        }
        for event in events
    ]
    return repository.add_events(db, rows)


def finish(db: Connection, session: Row, now: int) -> str:
    """The completion code; given only when every planned trial has its answer."""
    if session["stage"] == "done":
        return str(session["completion_code"])
    moved = _stepped(progress_of(session), "finish")
    missing = session["practice"] + session["main"] - responses.n_answers(db, session["session_id"])
    if missing:
        raise Refused(425, f"{missing} answers are still missing.")
    code = "".join(secrets.choice(_CODE_LETTERS) for _ in range(10))
    repository.change_session(db, session["session_id"], {"completed_at": now, "completion_code": code})
    repository.finish_slot(db, session["session_id"])
    _move(db, session, moved, now)
    return code


def _stepped(progress: Progress, event: Any) -> Progress:
    try:
        return step(progress, event)
    except IllegalStep as error:
        raise Refused(410 if progress.stage in ENDED else 425, str(error)) from None


def _move(db: Connection, session: Row, progress: Progress, now: int) -> None:
    moved = {"stage": progress.stage, "position": progress.position, "last_seen": now}
    repository.change_session(db, session["session_id"], moved)


def _add_consent(db: Connection, session: Row, agreed: bool, manifest: Manifest, now: int) -> None:
    texts = texts_of(manifest)
    shown = f"{texts['consent']}\n\n{texts['agree']}".encode()
    row = {"session_id": session["session_id"], "lang": LANGUAGE, "agreed": int(agreed), "at": now}
    repository.add_consent(db, {**row, "text_sha256": hashlib.sha256(shown).hexdigest()})


def _claim(db: Connection, session: Row, manifest: Manifest, now: int) -> dict[str, Any] | None:
    """Condition, sides and order of a person: fixed before for a preview, else the next slot's; None if full."""
    keys = ("condition", "side_flip", "order_seed")
    if session["mode"] == "preview":
        return {key: session[key] for key in keys}
    claim = (db, session["study_hash"], session["mode"], session["session_id"], now, now + HOLD_NS)
    slot = repository.claim_slot(*claim)
    if slot is None and session["mode"] == "sim":
        enlarge(db, manifest, "sim", repository.n_blocks(db, session["study_hash"], "sim") + 1)
        slot = repository.claim_slot(*claim)
    return None if slot is None else {key: slot[key] for key in keys}


def enlarge(db: Connection, manifest: Manifest, mode: str, per_condition: int) -> None:
    """Give a version at least so many slots in each condition."""
    known = repository.n_blocks(db, manifest.study_hash, mode)
    wanted = blocks(manifest.conditions, per_condition, mode_seed(manifest.seed, mode))
    new = [asdict(slot) for slot in wanted if slot.block >= known]
    repository.add_slots(db, manifest.study_hash, mode, new)


def _add_plan(db: Connection, session_id: str, manifest: Manifest, place: dict[str, Any]) -> None:
    rows = [
        {
            "session_id": session_id,
            "trial_index": index,
            "phase": item.phase,
            "item_id": item.trial.id,
            "left_is": item.left_is,
            "screen_json": json.dumps(item.screen),
            "shown_sha256": item.shown_sha256,
        }
        for index, item in enumerate(plan(manifest, place["condition"], place["side_flip"], place["order_seed"]))
    ]
    repository.add_plan(db, rows)


def _append(db: Connection, session: Row, answer: Answer, now: int) -> None:
    """The response, and the event that tells the same, in one transaction."""
    (planned,) = repository.planned(db, session["session_id"], answer.trial_index, 1)
    other = {"a": "b", "b": "a"}
    choice = planned["left_is"] if answer.side == "left" else other[planned["left_is"]]
    row = {**answer.model_dump(), "resumed": int(answer.resumed), "choice": choice}
    shown = {"session_id": session["session_id"], "shown_sha256": planned["shown_sha256"], "received_at": now}
    responses.append(db, {**row, **shown})
    event = ClientEvent(
        event_id=str(uuid.uuid4()), kind="answered", trial_index=answer.trial_index, t_client_ms=answer.event_ms
    )
    add_events(db, session, [event], now)


def _add_conflict(db: Connection, session: Row, answer: Answer, now: int) -> None:
    row = {
        "session_id": session["session_id"],
        "trial_index": answer.trial_index,
        "attempt_id": answer.attempt_id,
        "payload_json": answer.model_dump_json(),
        "reason": "answered before",
        "received_at": now,
    }
    responses.add_conflict(db, row)
