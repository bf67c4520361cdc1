"""Export the responses as files."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any, get_args

import streamlit as st

from dashboard.shared import service
from dashboard.shared.messages import escape_markdown
from dashboard.studies.workspace_studies import Study, count_finished
from study.collection.access.permissions import Permission
from study.collection.export import export
from study.collection.researcher import Researcher
from study.service import Mode

WORDS = {"live": "Participants", "sim": "Simulated participants", "preview": "Previews"}


def show(study: Study) -> None:
    """Choose the responses, then offer the files."""
    if not study.versions:
        st.info("No responses have been collected yet.")
        return
    researcher = service.get_acting_researcher()
    chosen = _choose_modes(study, researcher)
    frame = researcher.responses(study.name, chosen)
    st.caption(f"{len(frame):,} responses, one row each, pseudonymous. The data dictionary describes every column.")
    if chosen and len(frame):
        st.dataframe(frame.head(100), hide_index=True, height=260)
    with st.container(horizontal=True):
        for label, name, mime in (
            ("Responses (CSV)", f"{study.name}.csv", "text/csv"),
            ("Data dictionary (JSON)", "data-dictionary.json", "application/json"),
        ):
            st.download_button(
                label,
                partial(_file, researcher, study.name, chosen, name),
                name,
                mime,
                disabled=frame.empty,
                on_click="ignore",
                icon=":material/download:",
            )


def _choose_modes(study: Study, researcher: Researcher) -> list[Mode]:
    """Choose whose responses; those of participants only where the login may see them, else say why not."""
    refusal = researcher.explain_refusal(Permission.SEE_OUTCOMES, study.name)
    modes: list[Any] = [mode for mode in get_args(Mode) if refusal is None or mode != "live"]
    if refusal is not None:
        st.caption(escape_markdown(refusal))
    chosen: list[Mode] = st.pills(
        "Responses of",
        modes,
        selection_mode="multi",
        default=["live"] if count_finished(study.versions, "live") and "live" in modes else ["sim"],
        format_func=WORDS.__getitem__,
        key=f"export_{study.name}",
    )
    return chosen


def _file(researcher: Researcher, study: str, modes: list[Mode], name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        export(researcher, study, Path(folder) / f"{study}.csv", modes)
        return (Path(folder) / name).read_bytes()
