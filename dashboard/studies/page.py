"""Studies: all studies, and one of them from its file to its responses."""

from __future__ import annotations

import streamlit as st

from dashboard.shared import links, service
from dashboard.shared.messages import escape_markdown, format_message, show_errors
from dashboard.shared.sections import choose_section
from dashboard.studies import building, collection, exporting, membership, simulation, trials
from dashboard.studies.workspace_studies import COLOURS, Study, draw_overview, list_studies
from study.collection.permissions import Permission
from study.workspace.workspace import home


def page() -> None:
    """Draw the page."""
    st.title("Studies", anchor=False)
    st.caption(
        "A study is defined by a file, which you write on the page Design. Building freezes its images and "
        "heatmaps; participants then open it by a link."
    )
    with show_errors():
        building.take_done()
        studies = list_studies(home(), service.get_acting_researcher())
        if not studies:
            st.info("There is no study yet.")
            links.show_link("Design a study", "design")
            return
        table = st.empty()
        names = [study.name for study in studies]
        if st.query_params.get("study", names[0]) not in names:
            st.error(f"There is no study {escape_markdown(st.query_params['study'])}. Choose one of the studies below.")
        name = st.selectbox("Study", names, key="study", bind="query-params", width=420)
        if len(studies) > 1:
            table.html(draw_overview(studies, name))
        _details(studies[names.index(name)])


def _details(study: Study) -> None:
    named = study.title if study.name in study.title else f"{study.name}: {study.title}"
    st.header(f"{escape_markdown(named)} :{COLOURS[study.state]}-badge[{study.state}]", anchor=False)
    for fault in study.faults:
        st.error(format_message(fault))
    if study.bundle is not None:
        st.caption(f"Study hash `{study.bundle.study_hash[:12]}…`, folder `{study.bundle.folder.name}`")
    sections = {"Collection": lambda: collection.show(study)}
    if study.bundle is not None and service.get_acting_researcher().may(Permission.DESIGN, study.name):
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
