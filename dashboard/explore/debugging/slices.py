"""Error slices: groups of similar images on which the AI errs more often than on the others."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.debugging.slices import ErrorSlice
from dashboard.explore import picker
from dashboard.shared import numbers
from dashboard.shared.cache import Gallery
from dashboard.shared.messages import escape_markdown
from study.inquiry.debugging import DebuggingResults
from study.inquiry.slices import describe_result, describe_slice, format_slice, tabulate_slices


def show(found: DebuggingResults, gallery: Gallery, name: str, picked: Callable[[int], None]) -> None:
    """Show the slices as a list, and the images of the chosen one."""
    if isinstance(found.slices, str):
        st.info(escape_markdown(found.slices))
        return
    slices, names = found.slices.slices, found.class_names

    def tell(one: ErrorSlice) -> str:
        return describe_slice(one, found.images, found.predictions, names)

    st.markdown(escape_markdown(describe_result(found.slices)))
    chosen = st.selectbox(
        "Slice",
        range(len(slices)),
        format_func=lambda k: format_slice(k + 1, slices[k], tell(slices[k])),
        key="slice",
    )
    members = list(slices[chosen].members)
    wrong = {i for i in members if not found.predictions.correct[i]}
    picker.show_ranked(
        gallery,
        f"{name}_slice_{chosen}",
        [i for i in members if i in wrong] + [i for i in members if i not in wrong],
        picked,
        lambda i: [
            f"labelled {found.label_names[i]}",
            "predicted " + found.class_names[found.predictions.predicted[i]],
        ],
    )
    with st.expander("Data table"):
        table = tabulate_slices(found.slices, found.images, found.predictions, names)
        numbers.table(table, f"{name}.slices")
