"""Which column of a file is which of ours: a template to fill in, the choice, and the rows as they will be read."""

from __future__ import annotations

from itertools import product

import pandas as pd
import streamlit as st

from dashboard.shared import files
from study.analysis import responses
from study.bundle import TRIAL_TYPES
from study.workspace.spreadsheets import csv_text

NONE = "Not in the file"
PREVIEW_ROWS = 5


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


def choose_mapping(frame: pd.DataFrame, place: str) -> dict[str, str]:
    """Choose the columns, and show the first rows as they will be read; ``place`` begins the names of the widgets."""
    columns = [str(column) for column in frame.columns]
    complete = set(responses.REQUIRED) <= set(columns)
    with st.expander("Columns", expanded=not complete):
        with st.container(horizontal=True):
            chosen = {ours: _column(ours, columns, place) for ours in (*responses.REQUIRED, *responses.OPTIONAL)}
        mapping = {ours: theirs for ours, theirs in chosen.items() if theirs is not None}
        missing = [ours for ours in responses.REQUIRED if ours not in mapping]
        if missing:
            st.warning(f"Choose a column for {', '.join(missing)}.")
        seen = frame.head(PREVIEW_ROWS)
        st.caption(f"The first {len(seen)} of {len(frame):,} rows, as they will be read:")
        as_read = pd.DataFrame({ours: seen[theirs] for ours, theirs in mapping.items()})
        st.dataframe(as_read, hide_index=True, key=f"{place}_preview")  # keys scroll it on a phone
    return mapping


def _column(ours: str, columns: list[str], place: str) -> str | None:
    return st.selectbox(
        ours if ours in responses.REQUIRED else f"{ours} (optional)",
        columns,
        index=columns.index(ours) if ours in columns else None,
        placeholder=NONE,
        key=f"{place}_column_{ours}",
        width=200,
    )
