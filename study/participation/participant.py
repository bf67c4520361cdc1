"""The participant's side of the service: take part, leave."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from study.bundle import LETTERS, Trial
from study.participation import ending, entrance, lease, responding
from study.participation.arrival import Arrivals
from study.participation.blocks import BlockPlace, read_place
from study.participation.breaks import list_remaining_assets
from study.participation.catch import catch_trials
from study.participation.messages import list_unseen
from study.participation.page import page_state
from study.participation.payloads import (
    CheckResponses,
    ClientDevice,
    ClientEvent,
    QuestionnaireResponses,
    TrialResponse,
)
from study.participation.periods import find_condition
from study.participation.receipt import receipt
from study.participation.refusals import Refusal
from study.participation.responding import session_of_token
from study.participation.screens import find_letters
from study.participation.sittings import course
from study.participation.training import find_revealed, list_reservoir, open_training, write_feedback
from study.plan.procedure import Procedure, procedure_of
from study.plan.texts import texts_of
from study.store import Connection, identities, repository, responses
from study.store.rows import SessionRow, Side
from study.tasks import find_task
from study.tasks.task import Task
from study.workspace import disk

WITH_RECEIPT = ("between", "questionnaire", "debrief", "done", "expired")
"""After the trials of a sitting: a page whose connection fails at the very end has it already."""


@dataclass(frozen=True)
class Ack:
    """The reply to a response: an HTTP status, a sentence, feedback (practice only) and the page's new state.

    ``reveal`` is the image with its heatmap (SHA-256) that belongs to the feedback where the response is a place.
    """

    code: int
    message: str
    feedback: str | None
    state: dict[str, Any]
    reveal: str | None = None


@dataclass(frozen=True)
class SimulatedTrial:
    """A trial as only a simulated participant sees it: all of it, the condition's factors, the task, the right buttons.

    ``right`` and ``wrong`` are the buttons, the mildest first; two options have one of each. Of several classes, the
    true one is the last of the wrong ones where the AI errs. Where no response is right or wrong, ``right`` is empty
    and ``wrong`` has all levels, the lowest first.
    ``first_right`` says whether the first of two responses was right; None before it, and in a trial of one step.
    ``place`` is the trial's place among the blocks of the study, if it has any.
    """

    trial: Trial
    shows_heatmaps: bool
    task: Task
    right: tuple[Side, ...]
    wrong: tuple[Side, ...]
    first_right: bool | None
    place: BlockPlace | None = None
    shows_examples: bool = False


def _sort_sides(letters: Mapping[str, str], right: str, truth: str) -> tuple[tuple[Side, ...], tuple[Side, ...]]:
    """Sort the buttons into right and wrong ones, of a scale those next to the other kind first, ``truth`` last."""
    others = {*letters.values()} - {*right}
    wrong = sorted(
        sorted(others, reverse=bool(right) and max(others, default="") < right[0]), key=lambda letter: letter == truth
    )
    by_letter = {letter: cast(Side, side) for side, letter in letters.items()}
    return tuple(by_letter[one] for one in right), tuple(by_letter[one] for one in wrong)


class Participant(Arrivals):
    """Requests of the participant's page, in the name of a token."""

    def state(self, token: str, tab: str | None = None) -> dict[str, Any]:
        """Return what the page may know now."""
        return self._workspace.store.write(lambda db: self._state(db, self._admit_session(db, token, tab)))

    def take_over(self, token: str, tab: str) -> dict[str, Any]:
        """Continue in this tab; the one that had the session may not respond any more."""
        return self._workspace.store.write(lambda db: self._state(db, self._admit_session(db, token, tab, take=True)))

    def preload(self, token: str) -> list[str]:
        """Return the images of the trials up to the next break, in no telling order."""

        def work(db: Connection) -> list[str]:
            session = session_of_token(db, token)
            return list_remaining_assets(db, session, self._workspace.manifest_of(session))

        return self._workspace.store.read(work)

    def list_reservoir(self, token: str) -> list[dict[str, Any]]:
        """List the training images that the participant has seen, with what was shown and opened then."""

        def work(db: Connection) -> list[dict[str, Any]]:
            session = session_of_token(db, token)
            return list_reservoir(db, session, self._workspace.manifest_of(session))

        return self._workspace.store.read(work)

    def consent(
        self, token: str, agreed: bool, device: ClientDevice | None = None, tab: str | None = None
    ) -> dict[str, Any]:
        """Agree or decline."""
        state = self._act(token, tab, entrance.record_consent, agreed, device)
        self._remember(token) if agreed else self._forget(token)
        return state

    def ready(self, token: str, stage: str = "instructions", tab: str | None = None) -> dict[str, Any]:
        """Record that the page of a stage, ``instructions`` or ``example``, was read."""
        return self.submit_ready(token, stage, tab).result()

    def submit_ready(self, token: str, stage: str, tab: str | None = None) -> Future[dict[str, Any]]:
        """Queue what `ready` does; no thread waits meanwhile."""
        act = entrance.finish_example if stage == "example" else entrance.finish_instructions
        return self._submit_act(token, tab, act)

    def check(self, token: str, sent: CheckResponses, tab: str | None = None) -> dict[str, Any]:
        """Record one try of the comprehension check; a participant who passes is assigned a condition."""
        return self._act(token, tab, entrance.grade_check, sent)

    def record(self, token: str, response: TrialResponse, tab: str | None = None) -> Ack:
        """Store a response exactly once; see `study.participation.responding.record` for the codes."""
        return self.submit_response(token, response, tab).result()

    def submit_response(self, token: str, response: TrialResponse, tab: str | None = None) -> Future[Ack]:
        """Queue a response to be stored, as by `record`; no thread waits meanwhile."""

        def work(db: Connection) -> Ack:
            session = self._admit_session(db, token, tab)
            manifest = self._workspace.manifest_of(session)
            code, message = responding.record(db, session, manifest, response, self._workspace.clock())
            is_last = session["position"] > response.trial_index
            feedback = self._feedback(db, session, response.trial_index) if code in (200, 201) and is_last else None
            reveal = feedback and find_revealed(manifest, response.trial_index)
            return Ack(code, message, feedback, self._state(db, session), reveal)

        return self._workspace.store.submit(work)

    def events(self, token: str, events: list[ClientEvent]) -> int:
        """Append what the page noticed; sending the same again changes nothing. Returns how many were new.

        None while the disk is nearly full: what is left of it is for responses.
        """
        if disk.is_low(self._workspace.home):
            return 0
        return self._workspace.store.write(
            lambda db: responding.add_events(db, session_of_token(db, token), events, self._workspace.clock())
        )

    def messages(self, token: str) -> list[dict[str, Any]]:
        """Return ``number`` and ``text`` of the researchers' messages that the page has not shown yet."""
        unseen = self._workspace.store.read(lambda db: list_unseen(db, session_of_token(db, token)))
        return [{"number": message.number, "text": message.text} for message in unseen]

    def start_sitting(self, token: str, number: int, tab: str | None = None) -> dict[str, Any]:
        """Start the next sitting, of this number; `Refusal` (425) before it opens."""
        return self._act(token, tab, entrance.start_sitting, number)

    def fill(self, token: str, sent: QuestionnaireResponses, tab: str | None = None) -> dict[str, Any]:
        """Keep the questionnaire."""
        return self._act(token, tab, ending.fill, sent)

    def finish(self, token: str, tab: str | None = None) -> dict[str, Any]:
        """End the session; the state then carries the completion code."""
        return self._act(token, tab, ending.finish)

    def withdraw(self, code: str, address: str | None = None) -> dict[str, Any]:
        """Erase all responses of the holder of a private code; what their page then shows.

        Raises
        ------
        Refused
            404: nobody has this code; 429: too many codes were tried from one address.
        """
        self._limit_codes(address)
        known = ending.code_hash_of(self._workspace.key, ending.tidy(code))
        # Looked for outside the writer: codes tried at random must not hold up participants.
        row = self._workspace.store.read(lambda db: repository.session_by_code(db, known))
        if row is None:
            raise Refusal(404, "No participation has this code.", "refused_code")
        mine = row["session_id"]

        def work(db: Connection) -> dict[str, Any]:
            session = repository.session_by_id(db, mine)
            manifest = self._workspace.manifest_of(session)
            ending.withdraw(db, session, manifest, self._workspace.clock())
            return page_state(db, session, manifest)

        return self._workspace.store.erase(work)

    def load_simulated_trial(self, token: str, trial_index: int) -> SimulatedTrial:
        """Return a planned trial with what is sealed; refused to all but simulated participants."""

        def work(db: Connection) -> SimulatedTrial:
            session = session_of_token(db, token)
            if session["mode"] != "sim" or session["condition"] is None:
                raise Refusal(403, "Only simulated participants in a condition may read the AI's prediction.")
            (planned,) = repository.list_planned_trials(db, session["session_id"], trial_index, 1)
            manifest = self._workspace.manifest_of(session)
            trials = (*manifest.practice, *manifest.trials, *catch_trials(manifest))
            trial = next(t for t in trials if t.id == planned["item_id"])
            task = find_task(manifest.config)
            right = "a" if planned["phase"] == "catch" else task.find_right(trial)
            screen = json.loads(planned["screen_json"])
            condition = find_condition(session["condition"], screen)
            truth = LETTERS[trial.options.index(trial.truth)] if task.has_several else ""
            sides = _sort_sides(find_letters(planned), right, truth)
            earlier = responses.list_earlier_of_trial(db, session["session_id"], trial_index) if task.steps > 1 else []
            first_right = earlier[0]["side"] in sides[0] if earlier else None
            place = read_place(screen)
            shown = condition.shows_heatmaps, task, *sides, first_right, place, condition.shows_examples
            return SimulatedTrial(condition.read(trial), *shown)

        return self._workspace.store.read(work)

    def load_simulated_procedure(self, token: str) -> Procedure:
        """Return what a simulated participant needs to pass; refused to all others."""
        session = self._workspace.store.read(lambda db: session_of_token(db, token))
        if session["mode"] != "sim":
            raise Refusal(403, "Only simulated participants may read the AI's predictions.")
        return procedure_of(self._workspace.manifest_of(session))

    def _act(self, token: str, tab: str | None, work: Callable[..., None], *sent: Any) -> dict[str, Any]:
        """Do something in a session's name and return what the page may know then."""
        return self._submit_act(token, tab, work, *sent).result()

    def _submit_act(self, token: str, tab: str | None, work: Callable[..., None], *sent: Any) -> Future[dict[str, Any]]:
        """Queue an act and the reading of the page's new state, both in the writer's transaction.

        The future is resolved after the commit; a transaction of its own for the state would take as long as the act.
        """

        def run(db: Connection) -> dict[str, Any]:
            session = self._admit_session(db, token, tab)
            work(db, session, self._workspace.manifest_of(session), *sent, self._workspace.clock())
            return self._state(db, session)

        return self._workspace.store.submit(run)

    def _admit_session(self, db: Connection, token: str, tab: str | None, *, take: bool = False) -> SessionRow:
        """Return the session of a token, if this tab may work in it; ended here if its time is over."""
        session = session_of_token(db, token)
        lease.admit(db, session, tab, self._workspace.clock(), take=take)
        manifest, now = self._workspace.manifest_of(session), self._workspace.clock()
        # A clock that jumps must end nothing: only an end that is due by it asks how far time had come.
        if ending.is_due(db, session, manifest, now):
            ending.expire(db, session, manifest, self._workspace.compute_trusted_time(db))
        return session

    def _state(self, db: Connection, session: SessionRow) -> dict[str, Any]:
        state = page_state(db, session, self._workspace.manifest_of(session))
        if session["stage"] not in ("consent", "declined", "withdrawn"):
            state["withdrawal_code"] = ending.withdrawal_code(self._workspace.key, session["session_id"])
        if session["stage"] == "between":
            manifest, now = self._workspace.manifest_of(session), self._workspace.clock()
            state |= course.describe_wait(db, session, manifest, texts_of(manifest), self._workspace.key, now)
        if session["stage"] in WITH_RECEIPT:
            state["receipt"] = receipt(db, self._workspace.key, session)
        if "{id}" in (state.get("redirect") or ""):
            state["redirect"] = self._fill_id(state["redirect"], session)
        return state

    def _fill_id(self, link: str, session: SessionRow) -> str | None:
        """Write the participant's own id into the link back; no link without it."""
        who = session["participant_id"]
        person = self._workspace.identities.read(lambda db: identities.find_person(db, who))
        return None if person is None else link.replace("{id}", quote(person, safe=""))

    def _remember(self, token: str) -> None:
        """Keep a consenting participant's recruiter id for as long as the study says."""
        session = self._workspace.store.read(lambda db: session_of_token(db, token))
        until = self._compute_erasure_time(session)
        if until is not None:
            self._workspace.identities.write(lambda db: identities.keep(db, session["participant_id"], until))

    def _forget(self, token: str) -> None:
        """Delete the recruiter's id of a participant who declines."""
        who = self._workspace.store.read(lambda db: session_of_token(db, token))["participant_id"]
        self._workspace.identities.erase(lambda db: identities.erase(db, who))

    def _feedback(self, db: Connection, session: SessionRow, trial_index: int) -> str | None:
        """Return what the task seals, for practice and training trials only."""
        manifest = self._workspace.manifest_of(session)
        if trial_index < session["practice"]:
            return write_feedback(manifest, manifest.practice[trial_index])
        return open_training(db, session, manifest, trial_index)
