"""From the consent page to the first trial: consent, comprehension, and the assignment to a slot."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

from study.bundle import Manifest, canonical
from study.participation.adapting import plan_trials
from study.participation.allocation import Place, list_new_slots, mode_seed, place_of
from study.participation.ending import give_code
from study.participation.payloads import CheckResponses, ClientDevice
from study.participation.periods import share_seeds
from study.participation.refusals import Refusal
from study.participation.responding import add_trials, advance_progress, move
from study.participation.session import SessionProgress, step
from study.participation.sittings import course
from study.participation.sittings.division import find_ends
from study.plan.orders import count_squares, is_within, list_places
from study.plan.procedure import procedure_of
from study.plan.texts import boxes, compose_consent
from study.store import Connection, quota, repository, sittings, timemark
from study.store.rows import SessionRow

MINUTE_NS = 60 * 10**9
PATIENCE = 2.5
"""A slot is held for this many times the median participation."""


def record_consent(
    db: Connection, session: SessionRow, manifest: Manifest, agreed: bool, device: ClientDevice | None, now: int
) -> None:
    """Record the consent; the same decision again is a retry."""
    if session["agreed_at"] is not None if agreed else session["stage"] == "declined":
        return
    moved = advance_progress(session, manifest, "agree" if agreed else "decline")
    _add_consent(db, session, agreed, manifest, now)
    if agreed:
        env = None if device is None else canonical(device.model_dump()).decode()
        # By a clock that is behind, the session would end as soon as the clock is set right.
        agreed_at = timemark.compute_trusted_time(db, now)
        repository.change_session(db, session, {"agreed_at": agreed_at, "env_json": env})
    move(db, session, moved, now)


def finish_instructions(db: Connection, session: SessionRow, manifest: Manifest, now: int) -> None:
    """Record that the instructions were read; without a comprehension check, assign a slot."""
    if session["stage"] == "instructions":
        _enter(db, session, manifest, advance_progress(session, manifest, "read"), now)


def finish_example(db: Connection, session: SessionRow, manifest: Manifest, now: int) -> None:
    """Record that the annotated example was seen: the trials begin."""
    if session["stage"] == "example":
        move(db, session, advance_progress(session, manifest, "seen"), now)


def start_sitting(db: Connection, session: SessionRow, manifest: Manifest, number: int, now: int) -> None:
    """Start the next sitting once it is open; the same number again is a retry.

    Raises
    ------
    Refusal
        425: this is not the next one, or it is not open yet.
    """
    wait = course.find_wait(db, session, manifest)
    if session["stage"] == "main" and wait is None and course.find_number(db, session, manifest) == number:
        return
    if session["stage"] != "between" or wait is None or wait.number != number:
        raise Refusal(425, f"Sitting {number} is not the next one.", "refused_moved")
    if now < wait.opens_at:
        raise Refusal(425, f"Sitting {number} opens in {(wait.opens_at - now) / 1e9:,.0f} s.", "refused_early")
    course.start(db, session, manifest, now)
    move(db, session, advance_progress(session, manifest, "return"), now)


def grade_check(db: Connection, session: SessionRow, manifest: Manifest, sent: CheckResponses, now: int) -> None:
    """Record one try of the comprehension check; the same try again is a retry."""
    check = procedure_of(manifest).check
    if sent.attempt <= repository.attempts(db, session["session_id"]):
        return
    if session["stage"] != "check" or len(sent.answers) != len(check.questions):
        raise Refusal(425, "These are not the questions that are open now.", "refused_moved")
    right = [q.options.index(q.answer) for q in check.questions]
    passed = sent.answers == right
    row = {"session_id": session["session_id"], "attempt": sent.attempt, "answers_json": json.dumps(sent.answers)}
    repository.add_attempt(db, {**row, "passed": int(passed), "received_at": now})
    if passed:
        return _enter(db, session, manifest, advance_progress(session, manifest, "pass"), now)
    last = sent.attempt >= check.tries
    move(db, session, advance_progress(session, manifest, "screen" if last else "again"), now)
    if last:
        give_code(db, session)


def enlarge(db: Connection, manifest: Manifest, mode: str, per_condition: int) -> None:
    """Give a version at least so many participants in each condition."""
    _add_blocks(db, manifest, mode, count_squares(manifest, per_condition))


def _add_blocks(db: Connection, manifest: Manifest, mode: str, blocks: int) -> None:
    """Give a version at least so many permuted blocks of slots."""
    known = quota.n_blocks(db, manifest.study_hash, mode)
    order = manifest.config.get("allocation", {}).get("order", "blocks")
    new = list_new_slots(list_places(manifest), blocks, mode_seed(manifest.seed, mode), known, order)
    if is_within(manifest):
        new = share_seeds(new)
    quota.add_slots(db, manifest.study_hash, mode, map(asdict, new))


def _enter(db: Connection, session: SessionRow, manifest: Manifest, moved: SessionProgress, now: int) -> None:
    """Assign a slot and a plan on the threshold of the first page that differs between conditions."""
    if moved.stage == "example":
        place = _claim(db, session, manifest, now)
        if place is None:
            moved = step(moved, "full")
            give_code(db, session)
        else:
            planned = plan_trials(manifest, place)
            add_trials(db, session, 0, planned)
            repository.change_session(db, session, asdict(place))
            ends = find_ends([one.screen for one in planned])
            sittings.add(db, session["session_id"], ends, session["agreed_at"] or now)
    move(db, session, moved, now)


def _add_consent(db: Connection, session: SessionRow, agreed: bool, manifest: Manifest, now: int) -> None:
    procedure = procedure_of(manifest)
    ticked = boxes(manifest)
    row = {
        "session_id": session["session_id"],
        "text_sha256": hashlib.sha256(compose_consent(manifest).encode()).hexdigest(),
        "lang": procedure.language,
        "version": procedure.consent.version,
        "boxes_json": json.dumps(ticked if agreed else [], ensure_ascii=False),
        "agreed": int(agreed),
        "at": now,
    }
    repository.add_consent(db, row)


def _claim(db: Connection, session: SessionRow, manifest: Manifest, now: int) -> Place | None:
    """Claim a participant's condition, sides and order: a preview's are fixed, else the next slot's; None if full."""
    if session["mode"] == "preview":
        return place_of(session)
    now = timemark.compute_trusted_time(db, now)  # by a clock that jumped, places of others would seem to be over
    until = now + hold_ns(db, manifest)
    claim = (db, session["study_hash"], session["mode"], session["session_id"], now, until)
    slot = quota.claim_slot(*claim)
    if slot is None and session["mode"] == "sim":
        _add_blocks(db, manifest, "sim", quota.n_blocks(db, session["study_hash"], "sim") + 1)
        slot = quota.claim_slot(*claim)
    return None if slot is None else place_of(slot)


def hold_ns(db: Connection, manifest: Manifest) -> int:
    """Return how long a slot is held before another may have it: the first may still finish, over the quota."""
    least = procedure_of(manifest).pacing.hold_minutes * MINUTE_NS
    list_durations = repository.durations if procedure_of(manifest).sittings is None else sittings.list_durations
    took = list_durations(db, manifest.study_hash)
    return max(least, int(PATIENCE * took[len(took) // 2])) if took else least
