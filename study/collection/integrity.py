"""Integrity of a study and its database: chain, plans, counts and places, recomputed from the bundle."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from core.errors import ForetellError
from study.bundle import Manifest, Trial
from study.conditions import CONDITIONS
from study.participation.adapting import list_history, plan_trials
from study.participation.allocation import place_of
from study.participation.blocks import find_block_faults
from study.participation.periods import find_period_faults
from study.participation.placing import find_choice
from study.participation.screens import (
    PresentedTrial,
    assets,
    count_steps,
    find_letters,
    hash_screen,
    hide_explanation,
    lay_out_trial,
)
from study.participation.sittings.check import find_wrong_sittings
from study.participation.sittings.division import find_sitting_faults
from study.plan.adaptive import adaptive_of
from study.plan.texts import word_task
from study.store import Connection, audit, quota, repository, responses
from study.store.rows import PlannedRow, ResponseRow, SessionRow
from study.tasks import find_task
from study.tasks.task import TWO, WordedTask

ManifestOf = Callable[[SessionRow], Manifest]
_BEFORE_A_PLACE = ("consent", "instructions", "check", "declined", "screened", "full", "withdrawn")


def find_unplayable(manifest: Manifest) -> Iterator[str]:
    """Yield what a running study needs and the bundle's format does not guarantee."""
    for name in manifest.conditions:
        CONDITIONS[name]
    worded = word_task(manifest)
    if not manifest.trials:
        yield f"Study {manifest.name!r} has no trials. Build it again."
    yield from find_block_faults(manifest)
    yield from find_period_faults(manifest)
    yield from find_sitting_faults(manifest)
    for trial in (*manifest.practice, *manifest.trials):
        yield from _check_assets(manifest, trial, worded)
        if worded.task.place is not None and trial.region is None:
            yield f"Trial {trial.id!r} has no region to find. Build the study again."
        if worded.task.of_attributes and trial.attributes is None:
            yield f"Trial {trial.id!r} has no attributes to ask about. Build the study again."
        if worded.task.of_units and trial.unit is None:
            yield f"Trial {trial.id!r} has no unit to ask about. Build the study again."
        count = worded.task.options
        several = "" if count == TWO else f" and {count - TWO} more"
        needed = {trial.target, trial.alternative}
        if len(needed) != TWO or len(trial.options) != count or len({*trial.options} | needed) != count:
            yield (
                f"Trial {trial.id!r}: its options {trial.options} are not the predicted class {trial.target!r} and the "
                f"foil {trial.alternative!r}{several}. Build the study again."
            )


def _check_assets(manifest: Manifest, trial: Trial, worded: WordedTask) -> Iterator[str]:
    """Check that all conditions load the same images: participants load `Task.list_assets`, whatever is shown."""
    loaded = set(worded.task.list_assets(trial))
    for name in manifest.conditions:
        extra = set(assets(lay_out_trial("practice", trial, CONDITIONS[name], "a", worded).screen)) - loaded
        if extra:
            more = sum(manifest.assets.get(sha256, 0) for sha256 in extra)
            yield (
                f"Trial {trial.id!r}: the condition {name!r} loads {len(extra)} image(s), {more:,} bytes, that the "
                "others do not load, so response times would not compare. Put them into the trial's assets."
            )


def find_faults(db: Connection, manifest_of: ManifestOf) -> Iterator[str]:
    """Yield one sentence per wrong row, in the order chain, participants, places, audit."""
    yield from responses.find_broken_links(db)
    for session in repository.every_session(db):
        try:
            yield from _check_session(db, session, manifest_of(session))
        except ForetellError as error:
            yield f"Session {session['session_id']} cannot be checked: {error}"
    yield from _check_places(db)
    yield from audit.find_broken_entries(db)


def _check_session(db: Connection, session: SessionRow, manifest: Manifest) -> Iterator[str]:
    """Compare the plan with a new one from condition, sides and order; each response with the plan; their count."""
    name = f"Session {session['session_id']}"
    planned = repository.list_planned_trials(db, session["session_id"], 0, session["practice"] + session["main"] + 1)
    place = place_of(session)
    if session["stage"] in _BEFORE_A_PLACE or place is None:
        if planned:
            yield f"{name} is at {session['stage']!r} but has a plan."
        return
    if not planned and session["stage"] == "expired":
        return  # expired before allocation, in a preview
    given = responses.of_session(db, session["session_id"])
    expected = plan_trials(manifest, place, _list_correctness(manifest, planned, given))
    yield from _check_plan(name, planned, expected, manifest)
    yield from _check_responses(name, given, {row["trial_index"]: row for row in planned}, manifest)
    yield from _check_earlier(db, session, planned, manifest)
    yield from (f"{name}{fault}" for fault in find_wrong_sittings(db, session, manifest, planned))
    if [row["trial_index"] for row in given] != list(range(session["position"])):
        yield f"{name} is at trial {session['position']} but has responses to {len(given)} trials."
    if session["stage"] == "done" and len(given) != len(expected):
        yield f"{name} is done with {len(given)} of {len(expected)} responses."


def _list_correctness(manifest: Manifest, planned: list[PlannedRow], given: Sequence[ResponseRow]) -> list[bool]:
    """List whether the responses to main trials were correct, by which a policy chose the trials after them."""
    main = {row["trial_index"]: row["item_id"] for row in planned if row["phase"] == "main"}
    choices = {main[row["trial_index"]]: row["choice"] for row in given if row["trial_index"] in main}
    return [one.right for one in list_history(manifest, [*main.values()], choices)]


def _check_plan(
    name: str, planned: list[PlannedRow], expected: list[PresentedTrial], manifest: Manifest
) -> Iterator[str]:
    if adaptive_of(manifest) is not None:
        for row, made in zip(planned, expected, strict=False):
            if _has_changed(row, made):
                yield (
                    f"{name}, trial {row['trial_index']}: the plan has {row['item_id']!r}, but by the seed and the "
                    f"responses before it the policy chooses {made.trial.id!r}, or shows it otherwise."
                )
                return
    if len(planned) != len(expected):
        yield f"{name} has a plan of {len(planned)} trials but the study has {len(expected)}."
        return
    for row, made in zip(planned, expected, strict=True):
        if _has_changed(row, made):
            yield f"{name}, trial {row['trial_index']}: the plan does not match the study."
            return


def _has_changed(row: PlannedRow, made: PresentedTrial) -> bool:
    kept = (row["phase"], row["item_id"], row["left_is"], json.loads(row["screen_json"]), row["shown_sha256"])
    return kept != (made.phase, made.trial.id, made.left_is, made.screen, made.shown_sha256)


def _check_responses(
    name: str, responses: Sequence[ResponseRow], planned: dict[int, PlannedRow], manifest: Manifest
) -> Iterator[str]:
    for row in responses:
        trial = planned.get(row["trial_index"])
        if trial is None or row["shown_sha256"] != trial["shown_sha256"]:
            yield f"{name}, trial {row['trial_index']}: the response does not match the planned trial."
        elif find_task(manifest.config).is_written != (row["text"] is not None):
            yield f"{name}, trial {row['trial_index']}: the response has a text where none is asked for, or has none."
        elif _find_choice(manifest, trial, row) != row["choice"]:
            yield f"{name}, trial {row['trial_index']}: the choice does not match what was pressed or marked."


def _find_choice(manifest: Manifest, planned: PlannedRow, row: ResponseRow) -> str | None:
    """Find the choice of a response again, from the place that was marked or the button; None of a wrong one."""
    try:
        return find_choice(manifest, planned, row["place"]) or find_letters(planned).get(row["side"])
    except ForetellError:
        return None


def _check_earlier(db: Connection, session: SessionRow, planned: list[PlannedRow], manifest: Manifest) -> Iterator[str]:
    """Compare the responses before the last one of each trial with the steps that were passed, and with the plan."""
    name, given = f"Session {session['session_id']}", responses.list_earlier(db, session["session_id"])
    task = find_task(manifest.config)
    steps = {row["trial_index"]: count_steps(task, row["phase"]) for row in planned}
    bare = {row["trial_index"]: _hide(row) for row in planned if steps[row["trial_index"]] > 1}
    yield from _check_responses(name, given, bare, manifest)
    wanted = [(index, step) for index in range(session["position"]) for step in range(1, steps.get(index, 1))]
    places = [(row["trial_index"], row["step"]) for row in given]
    passed, current = places[: len(wanted)], places[len(wanted) :]
    if passed != wanted or any(index != session["position"] for index, _ in current):
        yield f"{name} is at trial {session['position']} but has first responses to {len(given)} trials."


def _hide(row: PlannedRow) -> PlannedRow:
    """Return a planned trial as its first step shows it."""
    return {**row, "shown_sha256": hash_screen(hide_explanation(json.loads(row["screen_json"])))}


def _check_places(db: Connection) -> Iterator[str]:
    participants = {session["session_id"]: session for session in repository.every_session(db)}
    for slot in quota.all_slots(db):
        if slot["session_id"] is None:  # open, by a rule of the table
            continue
        holder = participants[slot["session_id"]]
        same = all(holder[key] == slot[key] for key in ("condition", "side_flip", "order_seed", "study_hash", "mode"))
        if not same or (slot["state"] == "done") != (holder["stage"] == "done"):
            yield f"Place {slot['slot_id']} ({slot['condition']}) does not match session {slot['session_id']}."
