"""Short tables without a download: figures are aligned at the right, where they can be compared (style.css)."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import streamlit as st

_FIGURE = re.compile(r"–|[≤<>×]?\s?[−+-]?\d[\d,.]*%?(\s?(\(|to |± ).*)?")
"""A cell that holds a figure, perhaps with its interval or a difference in brackets, or a dash for none."""


def draw_table(frame: pd.DataFrame, name: str, **options: Any) -> None:
    """Draw a table, in which columns of written figures are aligned as columns of numbers are.

    ``name`` tells it from others on the page; ``options`` are those of `streamlit.table`.
    """
    columns = "".join(f"_c{number}" for number in find_figures(frame))
    with st.container(key=f"figures_{name}{columns}"):
        st.table(frame, border="horizontal", hide_index=True, **options)


def find_figures(frame: pd.DataFrame) -> list[int]:
    """Return the numbers, from 1, of the columns whose cells are figures written as text."""
    return [
        number
        for number, column in enumerate(frame.columns, start=1)
        if all(isinstance(cell, str) and _FIGURE.fullmatch(cell) for cell in frame[column])
    ]
