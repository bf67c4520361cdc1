"""Tables and figures with their numbers to download, each labelled as planned or exploratory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from pandas.io.formats.style import Styler

from core.names import upper_first
from dashboard.shared import files
from study.analysis.words.cells import CHANCES, Forms, list_forms
from study.analysis.words.headings import INTERIM, format_headings
from study.collection.export import DICTIONARY
from study.workspace.spreadsheets import csv_text

COLOURS = {"planned": "green", INTERIM: "orange", "exploratory": "gray"}
Words = Mapping[str, Callable[[Any], str]]
"""How the codes of a column are written in words, or its numbers in another unit, by the name of the column."""
SAME_AS_EXPORTED = ("participant", "condition", "item", "trial_type")
"""Columns that mean in every table what the data dictionary says."""
LONG = 25
"""Rows of a table that is scrolled."""
DIGIT_PX, LETTER_PX, MARGINS_PX = 9, 7, 24
"""Widths of a digit and of a letter of a heading, about, and of both margins of a cell, px."""


def heading(text: str, label: str) -> None:
    """Draw a heading with its label."""
    st.header(f"{text} :{COLOURS[label]}-badge[{label}]", anchor=False)


def table(
    frame: pd.DataFrame,
    name: str,
    words: Words | None = None,
    *,
    headings: Mapping[str, str] | None = None,
    coverage: str = "95%",
    order: Sequence[str] | None = None,
    shares: Collection[str] = frozenset(),
) -> None:
    """Draw a sortable table and its download.

    Parameters
    ----------
    name
        That of the file, which has the columns' names for headings, and codes in place of ``words``.
    headings
        Those of this table alone.
    coverage
        Of its intervals.
    order
        The columns that the page shows, in this order; the file keeps all of them in its own. Unknown ones are absent.
    shares
        Columns of this table that are written in percent, besides the accuracies.
    """
    height: Literal["content"] | int = "content" if len(frame) < LONG else 420
    chances = {name for name in CHANCES if name not in (headings or {})}
    labels = format_headings(frame.columns, headings, coverage)
    forms = list_forms(frame, chances, shares)
    widths = measure_widths(frame, labels, forms)
    st.dataframe(
        _format(frame, words or {}, forms),
        hide_index=True,
        key=f"table_{name}",
        height=height,
        placeholder="–",
        column_order=order,
        column_config={
            column: st.column_config.Column(label, width=widths.get(column), help=_describe_column(column))
            for column, label in labels.items()
        },
    )
    content = csv_text(frame)
    files.offer_download(f"{name}.csv", lambda: content, f"{name}.csv", "text/csv")


def chart(
    figure: go.Figure,
    frame: pd.DataFrame,
    name: str,
    words: Words | None = None,
    *,
    headings: Mapping[str, str] | None = None,
    coverage: str = "95%",
    order: Sequence[str] | None = None,
    has_download: bool = True,
) -> None:
    """Draw a figure with its numbers, a `table`; one whose marks are next to it on the page has no download."""
    config = {"displaylogo": False, "modeBarButtonsToRemove": [] if has_download else ["toImage"]}
    st.plotly_chart(figure, key=f"figure_{name}", config=config)
    with st.expander("Data table"):
        table(frame, name, words, headings=headings, coverage=coverage, order=order)


def _format(frame: pd.DataFrame, words: Words, forms: Forms) -> Styler:
    """Format numbers as articles print them, and codes in words; sorting uses the values themselves."""
    plain = frame.astype(dict.fromkeys(frame.select_dtypes("category"), object))  # else the browser shows codes
    return plain.style.format({**forms, **{name: words[name] for name in words if name in frame}}, na_rep="–")


def measure_widths(frame: pd.DataFrame, labels: Mapping[str, str], forms: Forms) -> dict[str, int]:
    """Measure the widths, px, of terms, and of the columns of numbers in which some are missing.

    The browser fits a column to its usual cells: among dashes, a single number is cut at the left, with its sign, and
    among terms the longest interaction at the right.
    """
    widths = {"term": MARGINS_PX + LETTER_PX * int(frame["term"].str.len().max())} if "term" in frame else {}
    for name, form in forms.items():
        known = frame[name].dropna()
        if 0 < len(known) < len(frame):
            digits = DIGIT_PX * max(len(form(value)) for value in known)
            widths[name] = MARGINS_PX + max(digits, LETTER_PX * len(labels[name]))
    return widths


def _describe_column(name: str) -> str:
    """Describe a column for its tooltip: its meaning in the data dictionary, if any, and its name in the file."""
    meaning = DICTIONARY[name]["meaning"] if name in SAME_AS_EXPORTED else ""
    return f"{upper_first(meaning)}. In the file: `{name}`" if meaning else f"In the file: `{name}`"
