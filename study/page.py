"""What a participant's page may know now. Nothing here says what the AI answered to a trial still to come."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from study.bundle import Manifest
from study.conditions import CONDITIONS
from study.screens import assets
from study.session import Progress
from study.store import Connection, repository
from study.store.rows import Row
from study.texts import LANGUAGE, instructions, texts_of

_TEXTS_OF_STAGE: dict[str, tuple[str, ...]] = {
    "consent": ("consent", "agree"),
    "declined": ("declined",),
    "full": ("full",),
    "practice": ("practice", "question", "map_legend", "examples_legend"),
    "main": ("main", "question", "map_legend", "examples_legend"),
    "instructions": ("question", "map_legend", "examples_legend"),
    "debrief": ("debrief",),
    "done": ("debrief",),
}


def progress_of(session: Row) -> Progress:
    """The state of a session's row."""
    return Progress(session["stage"], session["position"], session["practice"], session["main"])


def page_state(db: Connection, session: Row, manifest: Manifest) -> dict[str, Any]:
    """The whole state of the page, JSON-ready."""
    stage = session["stage"]
    texts = texts_of(manifest)
    state = {
        "stage": stage,
        "study": session["study"],
        "language": LANGUAGE,
        "title": texts["title"],
        "texts": {key: texts[key] for key in _TEXTS_OF_STAGE[stage]},
        "preview": session["mode"] == "preview",
    }
    if stage == "instructions":
        condition = CONDITIONS[session["condition"]]
        state["texts"]["instructions"] = instructions(texts, condition)
        state["layout"] = {"map": condition.shows_saliency, "samples": condition.shows_examples}
    if stage in ("practice", "main"):
        state |= _trials(session, repository.planned(db, session["session_id"], session["position"], 2))
    if stage == "done":
        state["code"] = session["completion_code"]
    return state


def remaining_assets(db: Connection, session: Row) -> list[str]:
    """Every asset of the trials still to come, sorted by name so that the order tells nothing."""
    rows = repository.planned(db, session["session_id"], session["position"], session["practice"] + session["main"])
    return sorted({sha256 for row in rows for sha256 in assets(json.loads(row["screen_json"]))})


def _trials(session: Row, rows: Sequence[Row]) -> dict[str, Any]:
    """The current trial, the one after it (to be ready on time), and how far the person is."""
    practising = session["stage"] == "practice"
    first = 0 if practising else session["practice"]
    trials = [{"index": row["trial_index"], **json.loads(row["screen_json"])} for row in rows]
    return {
        "trial": trials[0],
        "next": trials[1] if len(trials) > 1 else None,
        "first": first,
        "total": session["practice"] if practising else session["main"],
        "end_of_practice": session["practice"],
    }
