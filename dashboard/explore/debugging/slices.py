"""Error slices: groups of similar images on which the AI errs more often than on the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.debugging.slices import ErrorSlice, ErrorSlices
from dashboard.explore import picker
from dashboard.explore.debugging.rates import draw_rates
from dashboard.shared import numbers
from dashboard.shared.cache import Gallery
from dashboard.shared.messages import escape_markdown
from inquiry.debugging.debugging import DebuggingResults
from inquiry.debugging.slices import describe_result, describe_slice, format_slice, tabulate_slices

NAMES = 44
"""Letters in a line of what the images of a slice share."""


def show(results: DebuggingResults, gallery: Gallery, name: str, picked: Callable[[int], None]) -> None:
    """Show the slices as a list, and the images of the chosen one."""
    if isinstance(results.slices, str):
        st.info(escape_markdown(results.slices))
        return
    slices, names = results.slices.slices, results.class_names

    def tell(one: ErrorSlice) -> str:
        return describe_slice(one, results.images, results.predictions, names)

    st.markdown(escape_markdown(describe_result(results.slices, results.predictions)))
    st.plotly_chart(
        figure(results.slices, [tell(one) for one in slices]), key="slices", config={"displayModeBar": False}
    )
    st.caption("95% intervals. Dotted: all images that were measured.")
    chosen = st.selectbox(
        "Slice", range(len(slices)), format_func=lambda k: format_slice(k + 1, slices[k], tell(slices[k])), key="slice"
    )
    ranked = sorted(slices[chosen].members, key=lambda i: bool(results.predictions.correct[i]))  # errors first
    picker.show_ranked(gallery, f"{name}_slice_{chosen}", ranked, picked, partial(_describe_image, results))
    with st.expander("Data table"):
        table = tabulate_slices(results.slices, results.images, results.predictions, names)
        numbers.table(table, f"{name}.slices")


def _describe_image(results: DebuggingResults, i: int) -> list[str]:
    predicted = results.class_names[results.predictions.predicted[i]]
    return [f"labelled {results.label_names[i]}", f"predicted {predicted}"]


def figure(error_slices: ErrorSlices, told: Sequence[str]) -> go.Figure:
    """Draw the error rate of every slice with its interval, next to that of all images."""
    rows = [
        {
            "name": f"{k}: {said}",
            "share": one.rate.value,
            "low": one.rate.low,
            "high": one.rate.high,
            "count": one.errors,
            "of": len(one.members),
        }
        for k, (one, said) in enumerate(zip(error_slices.slices, told, strict=True), 1)
    ]
    return draw_rates(pd.DataFrame(rows), "Errors", of_all=error_slices.overall.value, wide=NAMES)
