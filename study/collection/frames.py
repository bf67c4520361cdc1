"""Answers as a table for the analysis: one row per answered main trial, correctness derived here and never stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from study.bundle import Trial
from study.conditions import CONDITIONS
from study.conditions.condition import Condition

COLUMNS = (
    "participant", "mode", "condition", "saliency", "examples", "trial", "item", "trial_type", "category",
    "alternative", "truth", "choice", "correct", "rt_ms", "confidence", "input", "resumed", "n_exposures", "blur_ms",
    "frame_hz", "dropped_frames", "clock_ms", "shown_sha256", "study_hash", "received_at",
)  # fmt: skip

MEASURED = ("confidence", "frame_hz", "dropped_frames", "clock_ms")
"""Numbers that are not always known."""


def response_frame(rows: Sequence[Mapping[str, Any]], trials: Mapping[tuple[str, str], Trial]) -> pd.DataFrame:
    """The table of answers.

    Parameters
    ----------
    rows
        Of `study.store.responses.list_main_responses`.
    trials
        The bundles' trials by (study hash, trial id).
    """
    records = [_record(row, trials[row["study_hash"], row["item_id"]]) for row in rows]
    frame = pd.DataFrame.from_records(records, columns=COLUMNS)
    return frame.astype(dict.fromkeys(MEASURED, float))


def pseudonym(row: Mapping[str, Any]) -> str:
    """The name of a participant in every table that leaves the database."""
    return f"P{row['participant_id'][:16]}"


def _record(row: Mapping[str, Any], trial: Trial) -> tuple[Any, ...]:
    condition: Condition = CONDITIONS[row["condition"]]
    chosen = trial.options[0] if row["choice"] == "a" else trial.options[1]
    received = datetime.fromtimestamp(row["received_at"] / 1e9, UTC).isoformat(timespec="milliseconds")
    return (
        pseudonym(row),
        row["mode"],
        row["condition"],
        int(condition.shows_saliency),
        int(condition.shows_examples),
        row["trial_index"] - row["practice"] + 1,
        trial.id,
        trial.trial_type,
        trial.target,
        trial.alternative,
        trial.truth,
        chosen,
        int(chosen == trial.target),
        row["rt_ms"],
        row["confidence"],
        row["input"],
        row["resumed"],
        row["n_exposures"],
        row["blur_ms"],
        row["frame_hz"],
        row["dropped_frames"],
        row["clock_ms"],
        row["shown_sha256"],
        row["study_hash"],
        received,
    )
