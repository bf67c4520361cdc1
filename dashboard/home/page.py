"""Home: what Foretell does, with links to its pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from dashboard.shared import service
from study.workspace.workspace import bundles, home

CARDS = {
    "explore": (
        "Explain a classifier",
        "Heatmaps of a classifier's predictions by several methods, each with a certificate of its reliability.",
    ),
    "studies": (
        "Run an experiment",
        "Turn explanations into an experiment: build it, check every trial, open it and monitor participation.",
    ),
    "teaching": (
        "Inspect the teaching examples",
        "Why these examples: the pool in the learner's space, other sets, and the learner's belief after each.",
    ),
    "power": (
        "Plan your sample size",
        "Power and cost by number of participants, from the paper, a pilot or simulated participants.",
    ),
    "results": (
        "See the results",
        "Mixed models of how well participants predict the AI, plain-language tests, and figures to download.",
    ),
}


def page(doors: Mapping[str, Any]) -> None:
    """Draw the page."""
    st.title("Do explanations help people predict an AI?", anchor=False)
    st.markdown(
        "Foretell explains an image classifier, shows the explanations to participants in a browser experiment, "
        "and fits the mixed models that test whether they helped."
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
    """Show what the workspace contains, with simulated participants counted separately."""
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
        "Simulated participants": done["sim"],
    }
    grid = st.grid(4, min_column_width=150)
    for label, number in numbers.items():
        grid.metric(label, f"{number:,}", border=True)
    if done["sim"]:
        st.caption("Simulated participants are for testing and planning a study; their responses are not evidence.")
    st.caption(f"Folder: `{folder}`")
