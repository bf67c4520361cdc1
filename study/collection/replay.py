"""Replay one participation: what happened, in order, and what was on the screen. It shows outcomes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from core.errors import ForetellError
from study.attributes.sets import name_set
from study.bundle import Manifest, Trial
from study.collection.tables.frames import pseudonym
from study.collection.tables.outcomes import is_blinded
from study.participation.catch import catch_trials
from study.participation.screens import find_letters, list_options
from study.places.grid import decode_cells
from study.store import Connection, history
from study.store.rows import Row, SessionRow
from study.tasks import find_task

EVENTS = {
    "loaded": "The page was loaded",
    "hidden": "The page was hidden",
    "visible": "The page was visible again",
    "blur": "The window lost the focus",
    "focus": "The window had the focus again",
    "offline": "The connection was lost",
    "online": "The connection was back",
    "resize": "The window changed its size",
    "slow": "The page asked for a response",
    "anticipation": "A response came too early and did not count",
    "break": "A break ended",
    "clock": "The browser's clock was compared with the server's",
    "message": "A message of the researchers was read",
    "other_key": "A key other than the two was pressed",
    "reservoir": "The training images were opened or closed",
    "storage_failed": "The browser could not store anything",
    "translated": "The browser translated the page",
    "unknown_parameters": "The link had a parameter that is not known",
    "withdraw_opened": "The page for withdrawing was opened",
}
"""What each kind of event of the participant's page means."""
RESPONDED = "A response was received"


@dataclass(frozen=True)
class ReplayedTrial:
    """One trial as a participant saw it, and the response to it.

    Attributes
    ----------
    number, phase
        Position in the participant's plan, from 1; practice, main or catch.
    trial
        The frozen trial.
    screen
        What was on the screen, by place: ``target``, ``map``, and ``left`` and ``right`` with ``name`` and ``samples``,
        or the ``options`` of a scale.
    side, choice
        The button pressed and what was on it, or what was written; None before a response.
    right
        What was on the right buttons: in an attention check the requested option. Of a place, its right outcome.
    response
        The stored response; its values are None before it was given.
    first
        What was on the button of the first response, in a trial of two steps once it was given.
    """

    number: int
    phase: str
    trial: Trial
    screen: dict[str, Any]
    side: str | None
    choice: str | None
    right: tuple[str, ...]
    response: Row
    first: str | None = None

    @property
    def correct(self) -> bool | None:
        """Whether the response is right; None before it, and where none is right or wrong."""
        return None if self.choice is None or not self.right else self.choice in self.right


@dataclass(frozen=True)
class Replay:
    """One participation.

    Attributes
    ----------
    participant, condition, stage, study_hash
        The pseudonym, the condition (None before the allocation), the last page, and the frozen study.
    timeline
        seconds (since the study was opened, by the server's clock), event, trial (from 1, or None), detail.
    trials
        Every planned trial in the participant's order.
    """

    participant: str
    condition: str | None
    stage: str
    study_hash: str
    timeline: pd.DataFrame
    trials: tuple[ReplayedTrial, ...]


def require_unblinded(db: Connection, study: str) -> None:
    """Raise `ForetellError` while the study's newest version collects responses and nobody has unblinded it."""
    if is_blinded(db, study):
        raise ForetellError(
            f"A session of {study!r} cannot be replayed yet: it shows the condition and the responses, and the study "
            "still collects. Close the study, or unblind it with a reason."
        )


def build_replay(db: Connection, session: SessionRow, manifest: Manifest) -> Replay:
    """Gather what is stored of one participation.

    Raises
    ------
    ForetellError
        The participant withdrew: the responses were erased.
    """
    if session["stage"] == "withdrawn":
        raise ForetellError(f"{pseudonym(session)} withdrew. The responses were erased: there is nothing to replay.")
    trials = tuple(_list_trials(db, session, manifest))
    rows = sorted(_list_happenings(db, session, trials), key=lambda row: row[0])
    timeline = pd.DataFrame(rows, columns=["seconds", "event", "trial", "detail"]).astype({"trial": "Int64"})
    timeline["seconds"] = (timeline["seconds"] - session["started_at"]) / 1e9
    condition = session["condition"]
    return Replay(pseudonym(session), condition, session["stage"], session["study_hash"], timeline, trials)


def _list_trials(db: Connection, session: SessionRow, manifest: Manifest) -> Iterator[ReplayedTrial]:
    task = find_task(manifest.config)
    known = {trial.id: trial for trial in (*manifest.practice, *manifest.trials, *catch_trials(manifest))}
    for row in history.list_trials(db, session["session_id"]):
        screen = json.loads(row["screen_json"])
        trial, side = known[row["item_id"]], row["side"]
        right = "a" if row["phase"] == "catch" else task.find_right(trial)
        options, letters = list_options(screen), find_letters(row)
        choice = options[side]["name"] if side else None
        first = options[row["first_side"]]["name"] if row["first_side"] else None
        shown_right = tuple(option["name"] for place, option in options.items() if letters[place] in right)
        if task.is_confirmed:  # the only button confirms a mark or a set, whose outcome is the choice
            choice, shown_right = side and task.name_choice(trial, row["choice"]), (task.name_choice(trial, right),)
        if task.is_written:  # nothing is right or wrong before its raters have coded it
            choice, shown_right = row["text"], ()
        number = row["trial_index"] + 1
        yield ReplayedTrial(number, row["phase"], trial, screen, side, choice, shown_right, row, first)


Happening = tuple[int, str, int | None, str]
"""When, in nanoseconds since 1970; what; in which trial; and more of it."""


def _list_happenings(db: Connection, session: SessionRow, trials: tuple[ReplayedTrial, ...]) -> Iterator[Happening]:
    mine = session["session_id"]
    yield session["started_at"], "The study was opened", None, ""
    for row in history.list_consents(db, mine):
        yield row["at"], "Consent was given" if row["agreed"] else "Consent was declined", None, ""
    for row in history.list_attempts(db, mine):
        passed = "passed" if row["passed"] else "failed"
        yield row["received_at"], f"The comprehension check was {passed}", None, f"attempt {row['attempt']}"
    for trial in trials:
        if trial.first is not None:
            given = trial.response
            detail = (
                f"{trial.first} ({given['first_side']}), {given['first_rt_ms'] / 1000:.2f} s, {given['first_input']}"
            )
            yield given["first_received_at"], "A first response was received", trial.number, detail
        if trial.side is not None:
            yield trial.response["received_at"], RESPONDED, trial.number, describe_response(trial)
    for row in history.list_conflicts(db, mine):
        yield row["received_at"], "A second response was not counted", row["trial_index"] + 1, row["reason"]
    for row in history.list_events(db, mine):
        number = None if row["trial_index"] is None else row["trial_index"] + 1
        kind = EVENTS.get(row["kind"], row["kind"].replace("_", " "))
        yield row["received_at"], kind, number, _describe_payload(json.loads(row["payload_json"]))
    for at in history.list_filled_at(db, mine):
        yield at, "The questionnaire was received", None, ""
    if session["completed_at"] is not None:
        yield session["completed_at"], "The participation ended", None, session["stage"]


def describe_response(trial: ReplayedTrial) -> str:
    """Describe a response in a few words: the class, the side, the response time, and how it was given."""
    given = trial.response
    where = _describe_set(trial.trial, given["place"]) or _describe_mark(given["place"]) or trial.side
    chosen = f"{trial.choice} ({where})" if given["text"] is None else f"“{given['text']}”"
    words = [chosen, f"{given['rt_ms'] / 1000:.2f} s", given["input"]]
    if trial.first is not None:
        words.append(f"first response {trial.first}")
    if given["confidence"] is not None:
        words.append(f"confidence {given['confidence']:.2f}")
    if given["blur_ms"]:
        words.append(f"page hidden for {given['blur_ms'] / 1000:.1f} s")
    if given["n_exposures"] and given["n_exposures"] > 1:
        words.append(f"shown {given['n_exposures']} times")
    return ", ".join(words)


def _describe_set(trial: Trial, text: str | None) -> str:
    """Describe which attributes were chosen; empty where a trial does not ask about them."""
    if trial.attributes is None or text is None:
        return ""
    return f"chosen: {', '.join(name_set(trial.attributes, text)) or 'none of them'}"


def _describe_mark(place: str | None) -> str:
    """Describe a mark in a few words: the point, or how much of the image was brushed over; empty without one."""
    if place is None or "," in place:
        return "" if place is None else f"marked at {place}"
    return f"brushed over {decode_cells(place).mean():.1%} of the image"


def _describe_payload(payload: Mapping[str, Any]) -> str:
    named = {name.replace("_", " "): value for name, value in payload.items()}
    return ", ".join(f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in named.items())  # fmt: skip
