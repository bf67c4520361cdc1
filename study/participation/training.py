"""What a participant may know after a response: feedback, and the training images seen so far (the reservoir)."""

from __future__ import annotations

import json
from typing import Any

from study.bundle import Manifest, Trial
from study.participation.blocks import read_place
from study.plan.procedure import procedure_of
from study.plan.texts import texts_of
from study.store import Connection, repository
from study.store.rows import SessionRow
from study.tasks import find_task

SEALED = "sealed_"
"""Prefix of the text for what a task seals, where it is no name of a class."""


def write_feedback(manifest: Manifest, trial: Trial) -> str | None:
    """Write what the task seals: only for a trial whose response is stored; None where the task does not tell it."""
    task, texts = find_task(manifest.config), texts_of(manifest)
    if not task.tells:
        return None
    sealed = task.find_sealed(trial)
    return texts["feedback"].replace("{name}", texts.get(f"{SEALED}{sealed}", sealed))


def open_training(db: Connection, session: SessionRow, manifest: Manifest, trial_index: int) -> str | None:
    """Open what the task seals for a training trial that was responded to; None for any other."""
    blocks = procedure_of(manifest).blocks
    if blocks is None or not blocks.feedback or trial_index >= session["position"]:
        return None
    (planned,) = repository.list_planned_trials(db, session["session_id"], trial_index, 1)
    place = read_place(json.loads(planned["screen_json"]))
    if place is None or place.kind != "training":
        return None
    return write_feedback(manifest, next(trial for trial in manifest.trials if trial.id == planned["item_id"]))


def list_reservoir(db: Connection, session: SessionRow, manifest: Manifest) -> list[dict[str, Any]]:
    """List the screens of the training trials that were responded to, each with its feedback, if the study has it.

    Nothing without a reservoir. No test trial and none still to come is among them.
    """
    blocks, first = procedure_of(manifest).blocks, session["practice"]
    if blocks is None or not blocks.reservoir or session["stage"] != "main":
        return []
    rows = repository.list_planned_trials(db, session["session_id"], first, session["position"] - first)
    trials = {trial.id: trial for trial in manifest.trials}
    listed = []
    for row in rows:
        screen = json.loads(row["screen_json"])
        if (place := read_place(screen)) is not None and place.kind == "training":
            opened = write_feedback(manifest, trials[row["item_id"]]) if blocks.feedback else None
            listed.append({**screen, "feedback": opened})
    return listed


def find_revealed(manifest: Manifest, trial_index: int) -> str | None:
    """Find the image with its heatmap (SHA-256) of a practice trial whose response was a place; None of others."""
    if find_task(manifest.config).place is None or trial_index >= len(manifest.practice):
        return None
    return manifest.practice[trial_index].assets.target_map
