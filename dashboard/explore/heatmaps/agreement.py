"""How far the methods of a grid agree: a matrix of rank correlations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from core.faithfulness.agreement import correlate_all
from core.names import format_name
from dashboard.explore.table import HeatmapTable
from dashboard.shared import numbers
from dashboard.shared.keys import digest


def show_agreement(shown: HeatmapTable, stem: str) -> None:
    """Draw the agreement of every two methods in a part that can be opened, if there are two."""
    if len(shown.rows) < 2:
        return
    with st.expander("Agreement of methods", on_change="rerun") as part:
        if not part.open:  # ranking every pixel takes a while
            return
        keys = [f"{cell.request.key} {cell.explanation is None}" for _, cell in shown.cells]
        correlations = _correlate(digest(*keys), shown)
        st.caption(
            "Spearman's rank correlation of the size of the evidence at each pixel: the correlation of the ranks, ties "
            "by their mean rank (Spearman 1904, doi:10.2307/1412159), averaged over the columns of the grid. 1: the "
            "same pixels matter most; 0: nothing in common. Directions, for or against the class, are not compared."
        )
        numbers.table(correlations, f"{stem}.agreement")


@st.cache_data(max_entries=24, show_spinner=False)
def _correlate(key: str, _shown: HeatmapTable) -> pd.DataFrame:  # noqa: ARG001
    return tabulate_agreement(_shown)


def tabulate_agreement(shown: HeatmapTable) -> pd.DataFrame:
    """Return the mean rank correlation of every two methods over the columns in which both have a heatmap."""
    count = len(shown.rows)
    each = np.full((len(shown.columns), count, count), np.nan)
    for k in range(len(shown.columns)):
        made = {r: row[k].explanation for r, row in enumerate(shown.rows.values())}
        known = {r: explanation for r, explanation in made.items() if explanation is not None}
        if known:
            each[k][np.ix_(list(known), list(known))] = correlate_all(list(known.values()))
    present = ~np.isnan(each)
    sums, counts = np.where(present, each, 0).sum(0), present.sum(0)
    mean = np.divide(sums, counts, out=np.full((count, count), np.nan), where=counts > 0)
    names = list(map(format_name, shown.rows))
    return pd.DataFrame(mean, columns=names).assign(method=names)[["method", *names]]
