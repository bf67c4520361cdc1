"""Responses as a table for the analysis: one row per response to a main trial; correctness is derived, never stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from study.bundle import Trial
from study.collection.tables.columns import Column, tabulate
from study.conditions import CONDITIONS


@dataclass(frozen=True)
class StoredResponse:
    """A stored response, and the frozen trial that it belongs to."""

    row: Mapping[str, Any]
    trial: Trial

    @property
    def choice(self) -> str:
        """The class that the participant chose."""
        return self.trial.options[0 if self.row["choice"] == "a" else 1]

    @property
    def received_at(self) -> str:
        """Time of receipt, in ISO 8601."""
        return datetime.fromtimestamp(self.row["received_at"] / 1e9, UTC).isoformat(timespec="milliseconds")


def pseudonym(row: Mapping[str, Any]) -> str:
    """Return the pseudonym of a participant in exported tables."""
    return f"P{row['participant_id'][:16]}"


COLUMNS: tuple[Column[StoredResponse], ...] = (
    Column("participant", "pseudonym of the participant, the same in all their rows", lambda one: pseudonym(one.row)),
    Column("mode", "live: a participant; preview: a researcher's preview; sim: a simulated participant"),
    Column("condition", "condition the participant was allocated to"),
    Column(
        "saliency",
        "whether the condition shows saliency maps",
        lambda one: int(CONDITIONS[one.row["condition"]].shows_saliency),
        values="0, 1",
    ),
    Column(
        "examples",
        "whether the condition shows examples",
        lambda one: int(CONDITIONS[one.row["condition"]].shows_examples),
        values="0, 1",
    ),
    Column(
        "trial",
        "position of the trial in the participant's order, without practice",
        lambda one: one.row["trial_index"] - one.row["practice"] + 1,
        unit="1 is the first",
    ),
    Column("item", "id of the trial in the frozen study", lambda one: one.trial.id),
    Column(
        "trial_type",
        "kind of trial",
        lambda one: one.trial.trial_type,
        values="adv_incorrect, std_incorrect, std_correct",
    ),
    Column("category", "class the AI predicted (the target category)", lambda one: one.trial.target),
    Column("alternative", "the foil: the other option", lambda one: one.trial.alternative),
    Column("truth", "true class of the image", lambda one: one.trial.truth),
    Column("choice", "option the participant chose as the AI's prediction", lambda one: one.choice),
    Column(
        "correct",
        "whether the participant predicted the AI: choice equals category",
        lambda one: int(one.choice == one.trial.target),
        values="0, 1",
    ),
    Column(
        "rt_ms",
        "from the second frame after the images were ready to the response, on the browser's clock",
        unit="ms",
    ),
    Column("confidence", "the participant's confidence, if the study asks", unit="0 guessed, 1 certain", dtype=float),
    Column("input", "input device of the response", values="key, mouse, touch, sim"),
    Column("resumed", "whether the page was reloaded while this trial was on the screen", values="0, 1"),
    Column("n_exposures", "how often the trial was shown to this participant before their response"),
    Column("blur_ms", "how long the page was hidden between onset and response", unit="ms"),
    Column("frame_hz", "refresh rate of the screen as the page measured it", unit="Hz", dtype=float),
    Column("dropped_frames", "late frames between onset and response", dtype=float),
    Column("clock_ms", "smallest step of the browser's clock", unit="ms", dtype=float),
    Column("shown_sha256", "SHA-256 over the SHA-256 of every image shown, one per line: target, heatmap, left, right"),
    Column("study_hash", "SHA-256 of the frozen study the participant took"),
    Column("received_at", "when the server received the response", lambda one: one.received_at, unit="ISO 8601, UTC"),
)


def response_frame(rows: Sequence[Mapping[str, Any]], trials: Mapping[tuple[str, str], Trial]) -> pd.DataFrame:
    """Tabulate responses.

    Parameters
    ----------
    rows
        Of `study.store.responses.list_main_responses`.
    trials
        The bundles' trials by (study hash, trial id).
    """
    return tabulate(COLUMNS, (StoredResponse(row, trials[row["study_hash"], row["item_id"]]) for row in rows))
