"""The writer's transaction when a participant responds to a trial."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

from core.errors import ForetellError
from study.bundle import Manifest, canonical
from study.names.texts import refuse_text
from study.participation.adapting import draw_schedule, list_history
from study.participation.allocation import place_of
from study.participation.payloads import ClientEvent, TrialResponse
from study.participation.placing import find_choice
from study.participation.refusals import Refusal
from study.participation.screens import PresentedTrial, count_steps, find_letters, hash_screen, hide_explanation
from study.participation.session import ENDED, Event, IllegalStep, SessionProgress, step
from study.participation.sittings import course
from study.plan.adaptive import adaptive_of
from study.plan.procedure import procedure_of
from study.store import Connection, repository, responses
from study.store.rows import PlannedRow, Row, SessionRow
from study.tasks import find_task

EVENTS_BEFORE_ALLOCATION, EVENTS_AT_LEAST, EVENTS_A_TRIAL = 100, 400, 20
MOST_CONFLICTS = 200
"""Second responses that are kept of a session."""
MOST_OF_PLACE = 512
"""Characters that are kept of a refused place or text: all of one that could have been right."""


def session_of_token(db: Connection, token: str) -> SessionRow:
    """Return the session of a token; raises `Refusal` (401) for one that is unknown or was replaced."""
    session = repository.session_by_token(db, token_hash(token))
    if session is None:
        raise Refusal(401, "No session has this token: it is mistyped, or a newer one replaced it.", "refused_stale")
    return session


def token_hash(token: str) -> str:
    """Hash a token: only this is stored, so that a reader of the database cannot take over a session."""
    return hashlib.sha256(token.encode()).hexdigest()


def record(
    db: Connection, session: SessionRow, manifest: Manifest, response: TrialResponse, now: int
) -> tuple[int, str]:
    """Store a response exactly once.

    Returns
    -------
    (int, str)
        201 stored; 200 stored before (a retry); 409 the trial has another response, which is kept, and this one went to
        ``response_conflict``; 410 the session ended; 425 not the current trial or step; 422 no response that this study
        takes. And a sentence. One to a step that cannot come now is kept in ``response_conflict``, too.
    """
    steps = _count_steps(db, session, manifest, response.trial_index)
    place = (response.trial_index, response.step)
    known, same = responses.find_responses(db, session["session_id"], place, response.attempt_id, steps)
    if known is not None and _is_same(known, response):
        return 200, "This response was saved before."
    if session["stage"] == "withdrawn":
        return 410, "This session has ended."
    if known is not None or same is not None:
        _add_conflict(db, session, response, "answered before", now)
        return 409, "This trial has a response already; the first one is kept."
    if session["stage"] in ENDED:
        return 410, "This session has ended."
    if session["stage"] not in ("practice", "main") or response.trial_index != session["position"]:
        return 425, "This is not the current question."
    if (response.input == "sim") != (session["mode"] == "sim"):
        return 422, "Only simulated participants respond by 'sim', and they always do."
    if (response.confidence is not None) != procedure_of(manifest).pacing.confidence:
        return 422, "A confidence belongs to every response of a study that asks for it, and to no other."
    if response.step > steps:
        _add_conflict(db, session, response, "no such step", now)
        return 422, f"A trial of this kind has {steps} response(s), and this one would be number {response.step}."
    if response.step > 1 + count_earlier(db, session, steps):
        _add_conflict(db, session, response, "before the first response", now)
        return 425, "The first response to this trial is missing. Respond to the image alone first."
    (planned,) = repository.list_planned_trials(db, session["session_id"], response.trial_index, 1)
    letters = find_letters(planned)
    if response.side not in letters:
        _add_conflict(db, session, response, "no such option", now)
        return 422, f"This trial has no option {response.side!r}: its options are {', '.join(letters)}."
    try:
        refuse_text(find_task(manifest.config), response.text)
    except ForetellError as error:
        _add_conflict(db, session, response, "no such text", now)
        return 422, str(error)
    try:
        choice = find_choice(manifest, planned, response.place) or letters[response.side]
    except ForetellError as error:
        kind = "set" if find_task(manifest.config).of_attributes else "place"
        _add_conflict(db, session, response, f"no such {kind}", now)
        return 422, str(error)
    _append(db, session, response, planned, choice, steps, now)
    progress = replace(_read_progress(session, manifest), ends=course.list_ends(db, session, manifest))
    move(db, session, step(progress, "respond") if response.step == steps else progress, now)
    _choose_next(db, session, manifest)
    course.note_end(db, session, manifest, now)
    return 201, "Saved."


def _choose_next(db: Connection, session: SessionRow, manifest: Manifest) -> None:
    """Choose the next trial by the responses so far, in the transaction of the last one; none if it is planned."""
    adaptive, place = adaptive_of(manifest), place_of(session)
    if adaptive is None or place is None or session["stage"] != "main":
        return
    planned = repository.list_planned_trials(db, session["session_id"], session["practice"], session["main"])
    if session["position"] < session["practice"] + len(planned):
        return
    names = [row["item_id"] for row in planned if row["phase"] == "main"]
    history = list_history(manifest, names, responses.choices(db, session["session_id"], "main"))
    add_trials(db, session, session["position"], draw_schedule(manifest, adaptive, place).list_next(history))


def add_trials(db: Connection, session: SessionRow, first: int, laid: Sequence[PresentedTrial]) -> None:
    """Add trials to a participant's plan, from index ``first`` on."""
    rows = [
        {
            "session_id": session["session_id"],
            "trial_index": index,
            "phase": item.phase,
            "item_id": item.trial.id,
            "left_is": item.left_is,
            "screen_json": json.dumps(item.screen),
            "shown_sha256": item.shown_sha256,
        }
        for index, item in enumerate(laid, first)
    ]
    repository.add_plan(db, rows)


def _is_same(known: Row, response: TrialResponse) -> bool:
    """Whether a response repeats a stored one: the same attempt with the same content."""
    return all(known[part] == getattr(response, part) for part in ("attempt_id", "side", "place", "text"))


def count_earlier(db: Connection, session: SessionRow, steps: int) -> int:
    """Count the responses to the current trial, of so many steps, before its last one."""
    if steps == 1:
        return 0
    return len(responses.list_earlier_of_trial(db, session["session_id"], session["position"]))


def _count_steps(db: Connection, session: SessionRow, manifest: Manifest, trial_index: int) -> int:
    """Count the responses to a planned trial; one where there is no such trial."""
    task = find_task(manifest.config)
    if task.steps == 1:
        return 1
    planned = repository.list_planned_trials(db, session["session_id"], trial_index, 1)
    return count_steps(task, planned[0]["phase"]) if planned else 1


def add_events(db: Connection, session: SessionRow, events: list[ClientEvent], now: int) -> int:
    """Append what the page noticed, within the session's budget; how many were new. Known events are skipped."""
    if session["stage"] in ("consent", "declined", "withdrawn"):
        return 0  # nothing of them is kept
    kept = repository.n_events(db, session["session_id"])
    return _append_events(db, session, events[: max(0, most_events(session) - kept)], now)


def most_events(session: SessionRow) -> int:
    """Limit the events kept of a session: pages send a few for each trial, a script as many as it likes."""
    if session["condition"] is None:
        return EVENTS_BEFORE_ALLOCATION
    return EVENTS_AT_LEAST + EVENTS_A_TRIAL * (int(session["practice"]) + int(session["main"]))


def _append_events(db: Connection, session: SessionRow, events: list[ClientEvent], now: int) -> int:
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


def advance_progress(session: SessionRow, manifest: Manifest, event: Event) -> SessionProgress:
    """Return the next state; raises `Refusal` (410 after the end, else 425) where there is none."""
    progress = _read_progress(session, manifest)
    try:
        return step(progress, event)
    except IllegalStep as error:
        raise Refusal(410 if progress.stage in ENDED else 425, str(error), "refused_moved") from None


def _read_progress(session: SessionRow, manifest: Manifest) -> SessionProgress:
    """Return the state in a session's row."""
    procedure = procedure_of(manifest)
    position = (session["stage"], session["position"], session["practice"], session["main"])
    return SessionProgress(*position, bool(procedure.check.questions), bool(procedure.questionnaire))


def move(db: Connection, session: SessionRow, progress: SessionProgress, now: int) -> None:
    """Keep where a participant is."""
    moved = {"stage": progress.stage, "position": progress.position, "last_seen": now}
    repository.change_session(db, session, moved)


def _append(
    db: Connection,
    session: SessionRow,
    response: TrialResponse,
    planned: PlannedRow,
    choice: str,
    steps: int,
    now: int,
) -> None:
    row = {**response.model_dump(exclude={"step"}), "resumed": int(response.resumed), "choice": choice}
    shown = planned["shown_sha256"]
    if response.step < steps:
        row["step"], shown = response.step, hash_screen(hide_explanation(json.loads(planned["screen_json"])))
    responses.append(db, {**row, "session_id": session["session_id"], "shown_sha256": shown, "received_at": now})


def _add_conflict(db: Connection, session: SessionRow, response: TrialResponse, reason: str, now: int) -> None:
    if repository.n_conflicts(db, session["session_id"]) >= MOST_CONFLICTS:
        return
    long = {"place": response.place, "text": response.text}
    kept = response.model_copy(update={name: value and value[:MOST_OF_PLACE] for name, value in long.items()})
    row = {
        "session_id": session["session_id"],
        "trial_index": response.trial_index,
        "attempt_id": response.attempt_id,
        "payload_json": kept.model_dump_json(),
        "reason": reason,
        "received_at": now,
    }
    responses.add_conflict(db, row)
