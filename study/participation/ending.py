"""The ends of a participation: finished, out of time, withdrawn; and what is owed."""

from __future__ import annotations

import hmac
import json
import secrets

from study.bundle import Manifest
from study.participation.pay import bonus, formula
from study.participation.payloads import QuestionnaireResponses
from study.participation.refusals import Refusal
from study.participation.responding import advance_progress, move
from study.participation.session import UNDER_WAY
from study.participation.sittings import course
from study.plan.procedure import Item, procedure_of
from study.store import Connection, audit, quota, repository, responses, subject
from study.store.rows import SessionRow
from study.tasks import find_task

_CODE_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
CODE_LENGTH = 12


def fill(db: Connection, session: SessionRow, manifest: Manifest, sent: QuestionnaireResponses, now: int) -> None:
    """Keep the questionnaire, once."""
    if session["stage"] in ("debrief", "done"):
        return
    moved = advance_progress(session, manifest, "fill")
    items = {item.id: item for item in procedure_of(manifest).questionnaire}
    wrong = [key for key, value in sent.answers.items() if key not in items or not _fits(items[key], value)]
    missing = [key for key, item in items.items() if item.required and key not in sent.answers]
    if wrong or missing:
        raise Refusal(422, f"The item {(wrong or missing)[0]!r} has no valid response.")
    rows = [
        {
            "session_id": session["session_id"],
            "item": key,
            "answer_json": json.dumps(value, ensure_ascii=False),
            "received_at": now,
        }
        for key, value in sent.answers.items()
    ]
    repository.add_questionnaire(db, rows)
    move(db, session, moved, now)


def finish(db: Connection, session: SessionRow, manifest: Manifest, now: int) -> None:
    """End the session with a completion code; only when every planned trial has its response."""
    if session["stage"] == "done":
        return
    moved = advance_progress(session, manifest, "finish")
    missing = session["practice"] + session["main"] - responses.count_responses(db, session["session_id"])
    if missing:
        raise Refusal(425, f"{missing} responses are still missing.", "refused_moved")
    give_code(db, session)
    in_time = quota.finish_slot(db, session["session_id"]) or session["mode"] == "preview"
    ended = {"completed_at": now, "over_quota": int(not in_time)}
    repository.change_session(db, session, ended)
    _owe(db, session, manifest)
    move(db, session, moved, now)


def is_due(db: Connection, session: SessionRow, manifest: Manifest, now: int) -> bool:
    """Tell whether a participation has taken too long, or its next sitting has closed."""
    is_begun = session["stage"] in UNDER_WAY and session["agreed_at"] is not None
    return is_begun and now > course.find_deadline(db, session, manifest)


def expire(db: Connection, session: SessionRow, manifest: Manifest, now: int) -> bool:
    """End a participation that has taken too long; whether it did."""
    if not is_due(db, session, manifest, now):
        return False
    give_code(db, session)
    quota.free_slot(db, session["session_id"])
    move(db, session, advance_progress(session, manifest, "expire"), now)
    return True


def withdraw(
    db: Connection, session: SessionRow, manifest: Manifest, now: int, actor: str = "", request: str = ""
) -> int:
    """Erase a participant's responses; the audit says that it happened, and the chain keeps the hashes.

    With an `actor`, a researcher withdraws the participant at their `request`, and the audit records both. Returns the
    number of responses erased, 0 if the participant has withdrawn before.
    """
    if session["stage"] == "withdrawn":
        return 0
    moved = advance_progress(session, manifest, "withdraw")
    session_id = session["session_id"]
    give_code(db, session)
    repository.add_withdrawal(db, session_id, now)
    erased = responses.erase(db, session_id)
    subject.erase_rest(db, session_id)
    quota.free_slot(db, session_id)
    repository.change_session(db, session, {"env_json": None, "origin": None, "browser_hash": None})
    detail = {"session": session_id, "responses": erased}
    if actor:
        audit.append(db, now, actor, "withdrew a participant", {**detail, "study": session["study"], "reason": request})
    else:
        audit.append(db, now, "participant", "withdrew", detail)
    move(db, session, moved, now)
    return erased


def withdrawal_code(key: bytes, session_id: str) -> str:
    """Return a participant's private code: made from the workspace's key each time it is needed, and never stored."""
    digest = hmac.new(key, f"withdraw\0{session_id}".encode(), "sha256").digest()
    return letters(digest[:CODE_LENGTH])


def tidy(code: str) -> str:
    """Restore a code as it was given out, however it was typed."""
    return code.strip().upper()


def code_hash(key: bytes, session_id: str) -> str:
    """Hash a private code for storage: the hash reveals no code without the workspace's key."""
    return code_hash_of(key, withdrawal_code(key, session_id))


def code_hash_of(key: bytes, code: str) -> str:
    """Return the keyed hash by which the session of a code is found."""
    return hmac.new(key, f"code\0{code}".encode(), "sha256").hexdigest()


def letters(digest: bytes) -> str:
    """Write a letter or digit for each byte, from an alphabet without lookalikes."""
    return "".join(_CODE_LETTERS[byte % len(_CODE_LETTERS)] for byte in digest)


def give_code(db: Connection, session: SessionRow) -> None:
    """Return a code by which the researcher finds this participation again."""
    if session["completion_code"] is None:
        code = "".join(secrets.choice(_CODE_LETTERS) for _ in range(10))
        repository.change_session(db, session, {"completion_code": code})


def _owe(db: Connection, session: SessionRow, manifest: Manifest) -> None:
    """Compute the bonus now: it outlasts a withdrawal."""
    pay = procedure_of(manifest).pay
    task = find_task(manifest.config)
    if not pay.most or session["mode"] != "live" or not task.is_scored_at_once:
        return
    chosen = responses.choices(db, session["session_id"], "main")
    right = sum(chosen[trial.id] in task.find_right(trial) for trial in manifest.trials if trial.id in chosen)
    row = {"session_id": session["session_id"], "minor_units": bonus(pay, right), "currency": pay.currency}
    repository.add_payment(db, {**row, "formula": formula(pay)})


def _fits(item: Item, value: str | int) -> bool:
    if item.kind == "scale":
        return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= item.points
    return isinstance(value, str) and (value in item.options if item.kind == "choice" else bool(value.strip()))
