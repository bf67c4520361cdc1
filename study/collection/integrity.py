"""Is a study playable, and is a database what it was: chain, plans, counts and places, recomputed from the bundle."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from core.errors import ForetellError
from study.bundle import Manifest, Trial
from study.conditions import CONDITIONS
from study.participation.screens import PresentedTrial, assets, lay_out_trial, plan
from study.store import Connection, audit, repository, responses
from study.store.rows import Row

ManifestOf = Callable[[Row], Manifest]
_BEFORE_A_PLACE = ("consent", "instructions", "check", "declined", "screened", "full", "withdrawn")


def unplayable(manifest: Manifest) -> Iterator[str]:
    """What the bundle's own format does not promise but a running study needs."""
    for name in manifest.conditions:
        CONDITIONS[name]
    if not manifest.trials:
        yield f"Study {manifest.name!r} has no trials. Build it again."
    for trial in (*manifest.practice, *manifest.trials):
        yield from _unequal(manifest, trial)
        if len({*trial.options}) != 2 or {trial.target, trial.alternative} != {*trial.options}:
            yield (
                f"Trial {trial.id!r}: its options {trial.options} are not the AI's answer {trial.target!r} and the "
                f"alternative {trial.alternative!r}. Build the study again."
            )


def _unequal(manifest: Manifest, trial: Trial) -> Iterator[str]:
    """Everybody loads `TrialAssets.every`, of any condition: the same bytes, if it is all that any condition shows."""
    for name in manifest.conditions:
        extra = set(assets(lay_out_trial("practice", trial, CONDITIONS[name], "a").screen)) - set(trial.assets.every)
        if extra:
            more = sum(manifest.assets.get(sha256, 0) for sha256 in extra)
            yield (
                f"Trial {trial.id!r}: the condition {name!r} loads {len(extra)} picture(s), {more:,} bytes, that the "
                "others do not load, so response times would not compare. Put them into the trial's assets."
            )


def faults(db: Connection, manifest_of: ManifestOf) -> Iterator[str]:
    """One sentence per row that is wrong, in the order chain, people, places, audit."""
    yield from responses.find_broken_links(db)
    for session in repository.every_session(db):
        try:
            yield from _person(db, session, manifest_of(session))
        except ForetellError as error:
            yield f"Session {session['session_id']} cannot be checked: {error}"
    yield from _places(db)
    yield from audit.find_broken_entries(db)


def _person(db: Connection, session: Row, manifest: Manifest) -> Iterator[str]:
    """The plan made again from condition, sides and order; then each answer against it, then their number."""
    name = f"Session {session['session_id']}"
    planned = repository.list_planned_trials(db, session["session_id"], 0, session["practice"] + session["main"] + 1)
    if session["stage"] in _BEFORE_A_PLACE or session["condition"] is None:
        if planned:
            yield f"{name} is at {session['stage']!r} and has a plan all the same."
        return
    if not planned and session["stage"] == "expired":
        return  # out of time before a place was given, in a preview
    expected = plan(manifest, session["condition"], session["side_flip"], session["order_seed"])
    yield from _plan(name, planned, expected)
    answers = responses.of_session(db, session["session_id"])
    yield from _answers(name, answers, {row["trial_index"]: row for row in planned})
    if [row["trial_index"] for row in answers] != list(range(session["position"])):
        yield f"{name} stands at trial {session['position']} and has answers to {len(answers)} trials."
    if session["stage"] == "done" and len(answers) != len(expected):
        yield f"{name} is done with {len(answers)} of {len(expected)} answers."


def _plan(name: str, planned: list[Row], expected: list[PresentedTrial]) -> Iterator[str]:
    if len(planned) != len(expected):
        yield f"{name} has a plan of {len(planned)} trials where its study makes {len(expected)}."
        return
    for row, made in zip(planned, expected, strict=True):
        kept = (row["phase"], row["item_id"], row["left_is"], json.loads(row["screen_json"]), row["shown_sha256"])
        if kept != (made.phase, made.trial.id, made.left_is, made.screen, made.shown_sha256):
            yield f"{name}, trial {row['trial_index']}: the plan is not the one its study makes."
            return


def _answers(name: str, answers: list[Row], planned: dict[int, Row]) -> Iterator[str]:
    for row in answers:
        trial = planned.get(row["trial_index"])
        if trial is None or row["shown_sha256"] != trial["shown_sha256"]:
            yield f"{name}, trial {row['trial_index']}: the answer is not to what the plan shows."
        elif (row["choice"] == trial["left_is"]) != (row["side"] == "left"):
            yield f"{name}, trial {row['trial_index']}: the choice is not the one on the side that was pressed."


def _places(db: Connection) -> Iterator[str]:
    people = {session["session_id"]: session for session in repository.every_session(db)}
    for slot in repository.all_slots(db):
        if slot["state"] == "open":
            continue
        holder = people[slot["session_id"]]
        same = all(holder[key] == slot[key] for key in ("condition", "side_flip", "order_seed", "study_hash", "mode"))
        if not same or (slot["state"] == "done") != (holder["stage"] == "done"):
            yield f"Place {slot['slot_id']} ({slot['condition']}) is not as session {slot['session_id']} has it."
