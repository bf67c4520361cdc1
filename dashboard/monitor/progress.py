"""How far participants got, where they left, and how long the study takes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from numpy.typing import NDArray

from study.collection.monitor import Monitor
from study.collection.tables.funnel import QUANTILES

COLOUR, ON_BAR = "#5265d9", "#ffffff"
"""Of bars, which light and dark pages show (contrast 3), and of the words on them (4.5)."""
TICKS = 6
WIDTHS = (0.5, 1, 2, 5, 10, 15, 30, 60)
"""Of the bars of completion times, minutes."""
MOST_BINS = 20
LEAST_MINUTES = 10
PERCENTILES = dict(zip(QUANTILES, ("10th percentile", "Median", "90th percentile"), strict=True))
"""The quantiles in the words of the page."""
PLAIN = {"displaylogo": False, "displayModeBar": False}


def show_progress(seen: Monitor) -> None:
    """Show the steps that participants took, and the completion times."""
    if seen.participants.empty:
        return
    steps, times = st.columns([1.4, 1], gap="large")
    with steps:
        st.header("How far participants got", anchor=False)
        st.caption("Participants at each step, and their share of the step before.")
        st.plotly_chart(draw_funnel(seen), key="monitor_funnel", config=PLAIN)
    with times:
        st.header("Time from consent to completion", anchor=False)
        _show_minutes(seen)
    _show_page_times(seen)


def _show_minutes(seen: Monitor) -> None:
    if seen.minutes.empty:
        st.caption("Nobody has completed the study yet.")
        return
    times = (f"{PERCENTILES[name].lower()} {format_minutes(seen.minutes.quantile(q))}" for name, q in QUANTILES.items())
    st.caption(f"Minutes: {', '.join(times)}.")
    st.plotly_chart(draw_minutes(seen), key="monitor_minutes", config=PLAIN)


def _show_page_times(seen: Monitor) -> None:
    """Show how long each part of the study takes."""
    if seen.page_times.empty:
        return
    st.header("Time in each part", anchor=False)
    st.caption("Minutes, by the server's clock, of the participants who finished each part.")
    shown = seen.page_times.rename(columns={"part": "Part", "participants": "Participants", **PERCENTILES})
    # numbers, which a table aligns, and not their texts
    st.table(
        shown.style.format(format_minutes, subset=list(PERCENTILES.values())), border="horizontal", hide_index=True
    )


def format_minutes(minutes: float) -> str:
    """Format a number of minutes no more precisely than it matters."""
    return "under\N{NO-BREAK SPACE}1" if minutes < 1 else f"{minutes:.1f}" if minutes < 10 else f"{minutes:,.0f}"


def draw_funnel(seen: Monitor) -> go.Figure:
    """Draw one bar for each step, with its count and the share of the step before."""
    rows = list(seen.funnel.itertuples())
    shares = ["", *("" if row.share != row.share else f" ({row.share:.0%})" for row in rows[1:])]
    text = [f"{row.participants:,}{share}" for row, share in zip(rows, shares, strict=True)]
    figure = go.Figure(
        go.Bar(
            x=seen.funnel["participants"],
            y=seen.funnel["step"],
            orientation="h",
            marker_color=COLOUR,
            text=text,
            textposition="auto",
            insidetextfont_color=ON_BAR,
            hoverinfo="skip",
        )
    )
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_xaxes(title="Participants", rangemode="tozero", **use_whole_ticks(seen.funnel["participants"].max()))
    figure.update_layout(height=60 + 44 * len(rows), margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def draw_minutes(seen: Monitor) -> go.Figure:
    """Draw the histogram of completion times, from 0: a bar is never as wide as a figure of few or short times."""
    width, edges = _divide_minutes(seen.minutes)
    counts, _ = np.histogram(seen.minutes, edges)
    figure = go.Figure(
        go.Bar(
            x=edges[:-1] + width / 2,
            y=counts,
            width=width,
            marker_color=COLOUR,
            customdata=np.stack([edges[:-1], edges[1:]], axis=1),
            hovertemplate="%{customdata[0]:g} to %{customdata[1]:g} min: %{y}<extra></extra>",
        )
    )
    figure.update_xaxes(title="Minutes", range=[0, max(LEAST_MINUTES, edges[-1])])
    figure.update_yaxes(title="Participants", rangemode="tozero", **use_whole_ticks(counts.max()))
    figure.update_layout(height=240, margin={"l": 0, "r": 0, "t": 8, "b": 0}, bargap=0.05)
    return figure


def _divide_minutes(minutes: pd.Series[float]) -> tuple[float, NDArray[np.float64]]:
    """Divide completion times into at most `MOST_BINS` bins; return their width and edges."""
    spread = float(minutes.max() - minutes.min())
    width = next((nice for nice in WIDTHS if spread <= (MOST_BINS - 1) * nice), spread / (MOST_BINS - 1))
    first, last = math.floor(minutes.min() / width), math.floor(minutes.max() / width) + 1
    return width, width * np.arange(first, last + 1)


def use_whole_ticks(most: float) -> dict[str, Any]:
    """Return the settings of an axis of counts up to ``most``: whole numbers, about `TICKS` of them."""
    return {"dtick": 1} if most <= TICKS else {"tickformat": ",d", "nticks": TICKS}
