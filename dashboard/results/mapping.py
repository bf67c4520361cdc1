"""Which column of a file is which of ours: a template to fill in, the choice, and the rows as they will be read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product

import pandas as pd
import streamlit as st

from core.names import upper_first
from dashboard.results.values import FACTORS
from dashboard.shared import files
from dashboard.shared.keys import digest
from study.analysis.responses import reading as responses
from study.analysis.responses.levels import list_required
from study.analysis.responses.spellings import guess_column
from study.bundle import TRIAL_TYPES, TYPE_LABELS
from study.collection.export import DICTIONARY
from study.workspace.spreadsheets import csv_text

NONE = "Not in the file"
PREVIEW_ROWS = 5
HELP = {
    **{name: f"{upper_first(fact['meaning'])}." for name, fact in DICTIONARY.items()},
    "confidence": f"{upper_first(responses.CONFIDENCE)}.",
    "trial_type": f"{'; '.join(f'{code}: {label}' for code, label in TYPE_LABELS.items())}. Other values are matched "
    "below.",
    "condition": "The group that the participant is in. It is enough without the columns saliency and examples: the "
    "groups are matched below.",
    "saliency": "1: the participant's condition shows saliency maps; 0: it does not. Not needed with a condition.",
    "examples": "1: the participant's condition shows examples; 0: it does not. Not needed with a condition.",
    "correct": "1: the response is correct (of the task predict: the participant predicted the AI); 0: not.",
}
"""What a column holds, by our name."""


def make_template() -> pd.DataFrame:
    """Return an example of a file of responses: one participant of each condition, one trial of each type."""
    rows = [
        {
            "participant": f"p{number}",
            "category": "bird",
            "trial_type": trial_type,
            "saliency": saliency,
            "examples": examples,
            "correct": (number + trial) % 2,
            "condition": condition,
            "trial": trial,
            "rt_ms": 1500 + 100 * trial,
        }
        for (number, ((saliency, examples), condition)), (trial, trial_type) in product(
            enumerate(responses.CONDITION_OF_FACTORS.items(), start=1), enumerate(TRIAL_TYPES, start=1)
        )
    ]
    return pd.DataFrame(rows)


def offer_template() -> None:
    """Offer the template as a file."""
    files.offer_download("Template (CSV)", lambda: csv_text(make_template()), "responses-template.csv", "text/csv")


def choose_mapping(frame: pd.DataFrame, place: str) -> dict[str, str] | None:
    """Choose the columns, and show the first rows as they will be read; None while a required one is missing.

    ``place`` begins the names of the widgets, which a file with other columns has of its own: it is matched afresh.
    """
    columns = [str(column) for column in frame.columns]
    required = list_required(frame, {}, responses.REQUIRED)
    complete = not list_missing(required, columns)
    key = f"{place}_column_{digest(*columns)[:12]}"
    said = st.container()
    with st.expander("Columns", expanded=not complete):
        with st.container(horizontal=True):
            chosen = {
                ours: _column(ours, columns, key, is_required=ours in required)
                for ours in dict.fromkeys((*required, *responses.REQUIRED, *responses.OPTIONAL))
            }
        mapping = {ours: theirs for ours, theirs in chosen.items() if theirs is not None}
        if mapping and len(frame):
            _show_first_rows(frame, mapping, place)
    missing = list_missing(list_required(frame, mapping, responses.REQUIRED), mapping)
    if missing:
        said.warning(f"No column for {', '.join(missing)} yet. Choose the columns below.")
    return None if missing else mapping


def list_missing(required: Sequence[str], names: Collection[str]) -> list[str]:
    """List the required columns that are missing; a condition says what both factors are."""
    implied = FACTORS if "condition" in names else ()
    return [ours for ours in required if ours not in names and ours not in implied]


def _show_first_rows(frame: pd.DataFrame, mapping: dict[str, str], place: str) -> None:
    seen = frame.head(PREVIEW_ROWS)
    st.caption(f"The first {len(seen)} of {len(frame):,} rows, as they will be read:")
    as_read = pd.DataFrame({ours: seen[theirs] for ours, theirs in mapping.items()})
    st.dataframe(as_read, hide_index=True, key=f"{place}_preview")  # keys scroll it on a phone


def _column(ours: str, columns: list[str], key: str, *, is_required: bool) -> str | None:
    guess = guess_column(ours, columns)
    return st.selectbox(
        ours if is_required else f"{ours} (optional)",
        columns,
        index=None if guess is None else columns.index(guess),
        placeholder=NONE,
        key=f"{key}_{ours}",
        width=200,
        help=HELP[ours],
    )
