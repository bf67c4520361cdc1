"""Build a study, open and close it, and the links to it."""

from __future__ import annotations

import functools
from typing import Literal
from urllib.parse import quote, urlsplit

import segno
import streamlit as st

from dashboard.shared import links, service
from dashboard.shared.messages import show_errors
from dashboard.studies import building, workspace_studies
from dashboard.studies.checklist import show_checklist
from dashboard.studies.workspace_studies import Study
from study.collection.guests import ACCESS
from study.collection.permissions import Permission
from study.plan.config import Allocation

CLOSING = "New participants read that the study has ended. Participants who have started can finish. You can reopen it."


def show(study: Study) -> None:
    """Show the steps of a collection that are possible now."""
    may = functools.partial(_may, study.name)
    building.show(study)
    if study.bundle is not None and may(Permission.COLLECT):
        show_checklist(study)
        _opening(study)
    if study.open_version is not None:
        if may(Permission.ADMIT):
            _access(study)
        if may(Permission.PREVIEW):
            _links(study)
    if study.last_version is not None:
        st.subheader("Participation", anchor=False)
        counts = workspace_studies.count_participants(study.last_version, study.conditions)
        st.table(counts, border="horizontal", hide_index=True)
        links.show_link("Monitor, pause and resume", "monitor", monitor_study=study.name)


def _may(name: str, permission: Permission) -> bool:
    return service.get_acting_researcher().may(permission, name)


def _opening(study: Study) -> None:
    assert study.bundle is not None
    st.subheader("Collection", anchor=False)
    current = study.open_version
    configured = study.bundle.manifest.config.get("allocation", {})
    default = int(configured.get("per_condition", Allocation().per_condition))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        people = st.number_input(
            "Participants per condition", 1, 10_000, default, 1, key=f"people_{study.name}", width=220
        )
        label = "Raise the quota" if current is not None else "Reopen" if study.last_version else "Start a collection"
        if current is not None and current.study_hash != study.bundle.study_hash:
            label = "Open the new version"
        kind: Literal["primary", "secondary"] = "primary" if label != "Raise the quota" else "secondary"
        start = st.button(label, type=kind, key=f"open_{study.name}")
        if current is not None and st.button("Close", key=f"close_{study.name}", help=CLOSING):
            service.get_acting_researcher().close_study(study.name)
            st.rerun()
    with show_errors():
        if start:
            service.get_acting_researcher().open_study(study.bundle.folder, int(people))
            st.rerun()
    if label == "Reopen":
        st.info("The collection is closed: new participants read that the study has ended. Reopen it to go on.")
    if label == "Open the new version":
        st.warning("A newer build is available. Participants who have started will finish the old version.")


def _access(study: Study) -> None:
    """Choose who can start, and the ids of a closed list."""
    assert study.open_version is not None
    st.subheader("Access", anchor=False)
    modes = list(ACCESS)
    current = study.open_version.access
    mode = st.selectbox(
        "Who can start",
        modes,
        modes.index(current if current in modes else "open"),
        format_func=ACCESS.__getitem__,
        key=f"access_{study.name}",
        help="Participants who have started can always finish. Links are signed by: python foretell.py links",
        width=320,
    )
    typed = ""
    if mode == "list":
        typed = st.text_area("IDs to add to the list, one per line", key=f"ids_{study.name}", height=120)
    ids = list(dict.fromkeys(line.strip() for line in typed.splitlines() if line.strip()))
    if (mode != current or ids) and st.button("Set access", key=f"set_access_{study.name}"):
        with show_errors():
            listed = service.get_acting_researcher().set_access(study.name, mode, ids)
            st.success(f"{ACCESS[mode]}." + (f" {listed} ids are on the list." if mode == "list" else ""))


def _links(study: Study) -> None:
    assert study.open_version is not None
    st.subheader("Links", anchor=False)
    st.caption("For participants. A recruiter's id may be added: `?PROLIFIC_PID=…`, `?pid=…` or `?participant=…`.")
    link = f"{_origin()}/run/{quote(study.name)}"
    address, code = st.columns([3, 1], vertical_alignment="center")
    address.code(link, language=None)
    address.caption("The button at the right of the link copies it.")
    code.image(draw_qr_code(link), width=140, caption="QR code of the link", alt="QR code of the link")
    st.caption("Preview the study as a participant sees it, in one condition. Previews are not data and use no quota.")
    with st.container(horizontal=True):
        for condition in study.conditions:
            st.link_button(f"Preview: {condition}", f"{link}?preview={quote(condition)}")


def draw_qr_code(link: str) -> str:
    """Return the QR code (ISO/IEC 18004) of a link as SVG, with the white border that readers need."""
    return str(segno.make(link, error="m").svg_inline(scale=4, border=4, light="#fff"))


def _origin() -> str:
    """Return the scheme, host and port of this page."""
    parts = urlsplit(st.context.url or "")
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else "http://127.0.0.1:8501"
