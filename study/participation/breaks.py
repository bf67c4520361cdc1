"""Where breaks are among the trials of a sitting, and which images are loaded up to the next one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from study.bundle import Manifest
from study.participation.blocks import is_test, opens_block
from study.participation.periods import list_period_breaks
from study.participation.responding import count_earlier
from study.participation.screens import count_steps
from study.participation.sittings import course
from study.plan.orders import is_within
from study.plan.procedure import procedure_of
from study.store import Connection, repository
from study.store.rows import PlannedRow, SessionRow
from study.tasks import find_task


def list_breaks(db: Connection, session: SessionRow, manifest: Manifest) -> list[int]:
    """List after how many main trials of a sitting there is a break; none with less than half of an interval after it.

    With blocks, there is one before each block but the first, and no other; with conditions within participants, also
    one before each period (`study.participation.periods`).
    """
    if procedure_of(manifest).blocks is not None:
        screens = _list_main_screens(db, session, course.find_stretch(db, session, manifest))
        return [k for k, screen in enumerate(screens) if k and opens_block(screen)]
    every, stretch = procedure_of(manifest).pacing.break_every, course.find_stretch(db, session, manifest)
    total = stretch.total
    if is_within(manifest):
        return list_period_breaks(_list_main_screens(db, session, stretch), every)
    return [trial for trial in range(every, total, every) if 2 * (total - trial) >= every] if every else []


def _list_main_screens(db: Connection, session: SessionRow, stretch: course.Stretch) -> list[dict[str, Any]]:
    rows = repository.list_planned_trials(db, session["session_id"], stretch.first, stretch.total)
    return [json.loads(row["screen_json"]) for row in rows]


def list_remaining_assets(db: Connection, session: SessionRow, manifest: Manifest) -> list[str]:
    """List the images of the trials up to the next break: all that any condition may show, so that all load the same.

    Sorted by name, so that the order tells nothing. Of trials with a first step the plain images alone, and all of
    the current trial's once its first response is stored; of test trials among blocks the plain images.
    """
    practising = session["position"] < session["practice"]
    stretch = course.find_stretch(db, session, manifest)
    done = session["position"] - stretch.first
    following = next((trial for trial in list_breaks(db, session, manifest) if trial > done), stretch.total)
    until = stretch.first + (0 if practising else following)
    rows = repository.list_planned_trials(db, session["session_id"], session["position"], until - session["position"])
    trials = {trial.id: trial for trial in (*manifest.practice, *manifest.trials)}
    shown = [trials[row["item_id"]] for row in rows if row["item_id"] in trials]
    task = find_task(manifest.config)
    if task.steps == 1:
        plain = set() if procedure_of(manifest).blocks is None else _list_tests(rows)
        listed = ([trial.assets.target] if trial.id in plain else task.list_assets(trial) for trial in shown)
        return sorted({sha256 for names in listed for sha256 in names})
    names = {trial.assets.target for trial in shown}
    if rows and count_earlier(db, session, count_steps(task, rows[0]["phase"])):
        names |= set(task.list_assets(trials[rows[0]["item_id"]]))
    return sorted(names)


def _list_tests(rows: Sequence[PlannedRow]) -> set[str]:
    """List the ids of the trials that show the image alone, in every condition."""
    return {row["item_id"] for row in rows if is_test(json.loads(row["screen_json"]))}
