"""How far participants came, where they left, and how long the study takes."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from study.collection.funnel import QUANTILES
from study.collection.monitor import Monitor

COLOUR, ON_BAR = "#5265d9", "#ffffff"
"""Of bars, which light and dark pages show (contrast 3), and of the words on them (4.5)."""
PLAIN = {"displaylogo": False, "displayModeBar": False}


def show_progress(seen: Monitor) -> None:
    """Show the steps that participants took, and the completion times."""
    if seen.participants.empty:
        return
    steps, times = st.columns([1.4, 1], gap="large")
    with steps:
        st.header("How far participants came", anchor=False)
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
    st.caption("Minutes: " + ", ".join(f"{name} {seen.minutes.quantile(q):.1f}" for name, q in QUANTILES.items()))
    st.plotly_chart(draw_minutes(seen), key="monitor_minutes", config=PLAIN)


def _show_page_times(seen: Monitor) -> None:
    """Show how long each part of the study takes."""
    if seen.page_times.empty:
        return
    st.header("Time in each part", anchor=False)
    st.caption("Minutes, by the server's clock, of the participants who finished each part.")
    shown = seen.page_times.rename(columns=str.capitalize)  # numbers, which a table aligns, and not their texts
    st.table(
        shown.style.format("{:.1f}", subset=list(map(str.capitalize, QUANTILES))), border="horizontal", hide_index=True
    )


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
    figure.update_xaxes(title="Participants", rangemode="tozero")
    figure.update_layout(height=60 + 44 * len(rows), margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def draw_minutes(seen: Monitor) -> go.Figure:
    """Draw the histogram of completion times."""
    figure = go.Figure(go.Histogram(x=seen.minutes, marker_color=COLOUR, nbinsx=20))
    figure.update_xaxes(title="Minutes", rangemode="tozero")
    figure.update_yaxes(title="Participants")
    figure.update_layout(height=240, margin={"l": 0, "r": 0, "t": 8, "b": 0}, bargap=0.05)
    return figure
