"""Home: what Foretell is, and where to go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from dashboard.shared import service
from study.workspace.workspace import bundles, home

CARDS = {
    "explore": (
        "See what an AI looks at",
        "Heatmaps of a classifier's answers by several methods, each with a certificate of how far to trust it.",
    ),
    "studies": (
        "Ask people",
        "Turn explanations into an experiment: build it, look at every trial, open it, follow who takes part.",
    ),
    "teaching": (
        "Look into a lesson",
        "Why these examples: the pool as a learner sees it, other sets, and her belief after each example.",
    ),
    "power": (
        "Plan how many",
        "Power and cost over the number of participants, from the paper, a pilot, or simulated people.",
    ),
    "results": (
        "Read the answer",
        "Mixed models of who foretold what, with the tests in plain words and figures to take away.",
    ),
}


def page(doors: Mapping[str, Any]) -> None:
    """The whole page."""
    st.title("Do explanations help people foretell an AI?", anchor=False)
    st.markdown(
        "Foretell explains an image classifier, turns the explanations into an experiment, runs it in the browser, "
        "and fits the models that answer the question."
    )
    st.space("small")
    grid = st.grid(3, min_column_width=260)
    for name, (heading, text) in CARDS.items():
        with grid.container(border=True):
            st.subheader(heading, anchor=False)
            st.markdown(text)
            st.page_link(doors[name], label=f":primary[**{doors[name].title}**]", icon=doors[name].icon)
    st.space("small")
    _workspace()


def _workspace() -> None:
    """What is there already; simulated people apart from real ones."""
    folder = home()
    statuses = service.get_service().researcher.studies()
    done = dict.fromkeys(("live", "sim"), 0)
    for status in statuses:
        for mode in done:
            done[mode] += sum(stages.get("done", 0) for stages in status.sessions.get(mode, {}).values())
    st.subheader("Your workspace", anchor=False)
    numbers = {
        "Studies built": len({path.name.rpartition("-")[0] for path in bundles(folder)}),
        "Open now": sum(status.state == "open" for status in statuses),
        "Participants": done["live"],
        "Simulated people": done["sim"],
    }
    grid = st.grid(4, min_column_width=150)
    for label, number in numbers.items():
        grid.metric(label, f"{number:,}", border=True)
    if done["sim"]:
        st.caption("Simulated people test a study and plan it; what they answer is no evidence.")
    st.caption(f"Folder: `{folder}`")
