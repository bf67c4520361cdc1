"""Studies: the list of all studies, and each of them from its file to its responses."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.shared import demo, links, service
from dashboard.shared.keys import NEW_STUDY
from dashboard.shared.messages import escape_markdown, format_message, show_errors
from dashboard.shared.sections import choose_section
from dashboard.studies import building, collection, exporting, membership, simulation, trials
from dashboard.studies.workspace_studies import COLOURS, Study, draw_overview, list_studies
from study.collection.access.permissions import Permission
from study.workspace.workspace import home


def page() -> None:
    """Draw the study that the link names, or the list of all."""
    with show_errors():
        building.take_done()
        studies = {study.name: study for study in list_studies(home(), service.get_acting_researcher())}
        chosen = st.query_params.get("study")
        if chosen in studies:
            _show_study(studies[chosen])
        else:
            _show_list(list(studies.values()), chosen)


def _show_list(studies: Sequence[Study], unknown: str | None) -> None:
    """Draw the list of all studies; a link named ``unknown``, if anything."""
    st.title("Studies", anchor=False)
    st.caption("Building a study freezes its images and heatmaps; participants then open it by a link.")
    demo.show_progress()
    if unknown is not None:
        st.error(f"There is no study {escape_markdown(unknown)}.")
    links.show_link(":material/add: New study", "design", study=NEW_STUDY)
    if studies:
        st.html(draw_overview(studies))


def _show_study(study: Study) -> None:
    """Draw one study, section by section."""
    named = study.title if study.name in study.title else f"{study.name}: {study.title}"
    st.title(f"{escape_markdown(named)} :{COLOURS[study.state]}-badge[{study.state}]", anchor=False)
    for fault in study.faults:
        st.error(format_message(fault))
    if study.bundle is not None:
        st.caption(f"Study hash `{study.bundle.study_hash[:12]}…`, folder `{study.bundle.folder.name}`")
    may_design = service.get_acting_researcher().may(Permission.DESIGN, study.name)
    with st.container(horizontal=True):
        links.show_link("All studies", "studies")
        if study.file is not None and may_design:
            label = "Make your own copy" if study.is_example else "Edit in Design"
            links.show_link(f":material/edit_note: {label}", "design", study=study.file.stem)
    sections = {"Collection": lambda: collection.show(study)}
    if study.bundle is not None and may_design:
        bundle = study.bundle
        sections |= {
            "Trials": lambda: trials.show(bundle),
            "Simulate": lambda: simulation.show(study),
            "Export": lambda: exporting.show(study),
        }
    sections["Members"] = lambda: membership.show(study)
    section = choose_section("Section", sections, "section")
    links.show()
    with show_errors():
        sections[section]()
