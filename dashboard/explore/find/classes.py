"""The accuracy of a network on each class of a set, as a table."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.explore.find.jobs import make_class_task
from dashboard.explore.find.view import Search
from dashboard.shared import cache, files
from dashboard.shared.live import draw_when_ready
from study.analysis.words.headings import format_headings
from study.workspace.spreadsheets import csv_text

FORMATS = {"sensitivity": "percent", "precision": "percent", "auc": "%.3f", "auc_low": "%.3f", "auc_high": "%.3f"}


def show_class_table(search: Search, row: DeltaGenerator) -> None:
    """Draw the table of the whole set, whatever the filters, where it is asked for in a ``row`` of controls."""
    if not row.toggle("Accuracy by class", key="by_class", bind="query-params"):
        return
    if not search.gallery.has_known_label.any():
        st.caption("No image can be scored: no label is one of the network's classes.")
        return
    st.caption(
        "Of the whole set, the class with the smallest AUC first. Sensitivity: share of a class's images that are "
        "predicted to be of it. Precision: share of the images predicted to be of it that are. AUC: how well its "
        "probability tells its images from all others; 0.5 is chance."
    )
    task = make_class_task(cache.load_classifier(search.model), search.gallery)
    draw_when_ready(task, lambda table: _draw(table, search.name), "_classes")


def _draw(table: pd.DataFrame, name: str) -> None:
    config: dict[str, Any] = format_headings(table)
    config |= {column: st.column_config.NumberColumn(config[column], format=form) for column, form in FORMATS.items()}
    st.dataframe(table, hide_index=True, key="explore_classes", column_config=config)
    files.offer_download("Table (CSV)", lambda: csv_text(table), f"{name}.classes.csv", "text/csv")
