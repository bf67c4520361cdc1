"""Build a study, open and close it, and the links to it."""

from __future__ import annotations

import functools
from urllib.parse import quote, urlsplit

import segno
import streamlit as st

from core.errors import ForetellError
from core.names import lower_first
from dashboard.shared import links, service
from dashboard.shared.closing import offer_close
from dashboard.shared.messages import show_errors
from dashboard.studies import building, workspace_studies
from dashboard.studies.checklist import describe_lacks, show_checklist
from dashboard.studies.saying import keep_said, show_said
from dashboard.studies.workspace_studies import Study
from study.building.categories import count_of
from study.bundle import Bundle
from study.collection.access.permissions import Permission
from study.collection.guests import ACCESS
from study.conditions import format_condition
from study.plan.orders import Allocation, count_squares, is_within, list_places
from study.plan.procedure import Contact, procedure_of
from study.plan.services import SERVICES

COLLECTION = " collection"
"""After a study's name, the place of what is said here; no study has a name with a space."""
RAISE, REOPEN, RENEW = "Raise the quota", "Reopen", "Open the new version"
MOST_PEOPLE = 10_000
"""Participants per condition."""


def show(study: Study) -> None:
    """Show the steps of a collection that are possible now."""
    may = functools.partial(_may, study.name)
    is_built = study.bundle is not None and not study.has_changed
    if study.open_version is not None and may(Permission.PREVIEW):
        _links(study)  # the link is what a researcher needs now
    if not is_built:
        building.show(study)
    if study.bundle is not None and may(Permission.PREVIEW):
        _previews(study, study.bundle)
    if study.bundle is not None and may(Permission.COLLECT):
        missing = show_checklist(study)
        _opening(study, study.bundle, missing)
    if study.open_version is not None and may(Permission.ADMIT):
        _access(study)
    if study.last_version is not None:
        st.header("Participation", anchor=False)
        counts = workspace_studies.count_participants(study.last_version, study.conditions)
        st.table(counts, border="horizontal", hide_index=True)
        links.show_link("Monitor, pause and resume", "monitor", study=study.name)
    if is_built and study.file is not None:
        st.header("Build", anchor=False)
        building.show(study)


def _may(name: str, permission: Permission) -> bool:
    return service.get_acting_researcher().may(permission, name)


def _previews(study: Study, bundle: Bundle) -> None:
    """Link the preview of each condition of the newest build, whether it is open or not."""
    st.header("Preview", anchor=False)
    current = study.open_version
    is_newer = current is not None and current.study_hash != bundle.study_hash
    st.caption(
        f"The {'newer build' if is_newer else 'study'} as a participant sees it, "
        f"{'in an order of all conditions' if is_within(bundle.manifest) else 'in one condition'}; only researchers "
        "who are logged in can see it. A preview is not data and uses no quota."
    )
    begins = " beginning with" if is_within(bundle.manifest) else ""
    with st.container(horizontal=True):
        for condition in bundle.manifest.conditions:
            label = f"Preview{begins}: {lower_first(format_condition(condition))}"
            st.link_button(label, f"{_link(study)}?preview={quote(condition)}")


def _opening(study: Study, bundle: Bundle, missing: int) -> None:
    """Draw the quota and the button that uses it; ``missing`` is the number of points still to do in the checklist."""
    st.header("Collection", anchor=False)
    show_said(study.name + COLLECTION)
    quota = next((version.quota for version in study.versions if version.study_hash == bundle.study_hash), 0)
    label = _name_opening(study, bundle)
    is_raised = label == RAISE
    least = quota + 1 if is_raised else max(quota, 1)
    configured = int(bundle.manifest.config.get("allocation", {}).get("per_condition", Allocation().per_condition))
    key = f"people_{study.name}_{least}"  # another field after each change, which begins at the quota
    asked = _name_quota(bundle, quota if is_raised else None)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        people = st.number_input(asked, value=quota or configured, step=1, key=key, width=260)
        with st.container(width="content") if is_raised else st.popover(label, type="primary"):
            may_open = is_raised or _ask_to_open(study.name, bundle, people, missing)
            st.button(
                label if is_raised else "Open to participants",
                type="secondary" if is_raised else "primary",
                key=f"open_{study.name}",
                disabled=not may_open,
                on_click=_open,
                args=(study.name, bundle, key, quota, least),
            )
        if study.open_version is not None:
            offer_close(study.name, f"close_{study.name}")
    _explain_opening(label)


def _name_quota(bundle: Bundle, quota: int | None) -> str:
    """Name the field of the quota, with what it is now where it is raised."""
    if is_within(bundle.manifest):
        return "Participants, each in every condition" if quota is None else f"New quota (now {quota:,})"
    return "Participants per condition" if quota is None else f"New quota per condition (now {quota:,})"


def _describe_size(bundle: Bundle, people: int) -> str:
    """Say for how many participants a study is opened."""
    conditions = len(bundle.manifest.conditions)
    if not is_within(bundle.manifest):
        return f"{people:,} participants per condition ({people * conditions:,} in total)"
    orders = len(list_places(bundle.manifest))
    total = count_squares(bundle.manifest, people) * orders
    rounded = f" (rounded up from {people:,}, to whole squares of {orders} orders)" if total != people else ""
    return f"{total:,} participants{rounded}, each of whom sees all {conditions} conditions"


def _explain_opening(label: str) -> None:
    if label == REOPEN:
        st.info("This study is closed: new participants are told that it has ended. Reopen it to go on.")
    if label == RENEW:
        st.warning("A newer build is available. Participants who have started will finish the old version.")


def _name_opening(study: Study, bundle: Bundle) -> str:
    """Return what opening this build does to the study."""
    if study.open_version is None:
        return REOPEN if study.last_version else "Open the study"
    return RAISE if study.open_version.study_hash == bundle.study_hash else RENEW


def _ask_to_open(name: str, bundle: Bundle, people: int, missing: int) -> bool:
    """Ask whether to open the study with this quota; return whether the participants' contact allows it."""
    left = f" {count_of(missing, 'point')} of the checklist still to do." if missing else ""
    st.markdown(
        f"**Open the study to {_describe_size(bundle, people)}?** The quota can be raised later, not lowered.{left}"
    )
    return _ask_for_contact(name, procedure_of(bundle.manifest).contact)


def _ask_for_contact(name: str, contact: Contact) -> bool:
    """Ask for a tick where participants could reach nobody; return whether the study may be opened."""
    lacks = describe_lacks(contact)
    if not lacks:
        return True
    st.warning(f"The consent {lacks}: participants with a question or a complaint could not reach you or the board.")
    return st.checkbox("Open it without a complete contact", key=f"without_contact_{name}")


def _open(name: str, bundle: Bundle, key: str, quota: int, least: int) -> None:
    """Open a build with the quota of the field ``key``, which must be at least ``least``: a quota is never lowered."""
    people = int(st.session_state[key])
    with keep_said(name + COLLECTION, _say_open(bundle, people)):
        if not 1 <= people <= MOST_PEOPLE:
            raise ForetellError(f"{people:,} participants per condition: enter a number from 1 to {MOST_PEOPLE:,}.")
        if people < least:
            raise ForetellError(
                f"The quota is {quota:,} per condition already and cannot be lowered. Enter {least:,} or more; to stop "
                "earlier, close the study."
            )
        service.get_acting_researcher().open_study(bundle.folder, people)


def _say_open(bundle: Bundle, people: int) -> str:
    if is_within(bundle.manifest):
        return f"The study is open to {_describe_size(bundle, people)}."
    return f"The study is open. Quota per condition: {people:,}."


def _access(study: Study) -> None:
    """Choose who can start, and the ids of a closed list."""
    assert study.open_version is not None
    st.header("Access", anchor=False)
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
    st.header("Link for participants", anchor=False)
    st.caption(
        "Choose where participants come from, and enter the link there as it is: the service fills in their ID. In "
        "other links, write the ID as `?pid=…`."
    )
    names = ["", *SERVICES]
    link = _link(study)
    left, code = st.columns([3, 1], gap="large")
    with left:
        address = st.container()
        service_name = st.selectbox(
            "Recruitment service",
            names,
            names.index(_find_service(study)),
            format_func=lambda name: SERVICES[name].title if name else "None, or another one",
            key=f"service_{study.name}",
            width=320,
        )
        if service_name:
            st.caption(SERVICES[service_name].remark)
    address.code(f"{link}?{SERVICES[service_name].arrival}" if service_name else link, language=None)
    code.image(draw_qr_code(link), width=140, caption="QR code of the link", alt="QR code of the link")


def _find_service(study: Study) -> str:
    """Return the recruitment service that the study file names."""
    return "" if study.bundle is None else procedure_of(study.bundle.manifest).recruiter.service


def draw_qr_code(link: str) -> str:
    """Return the QR code (ISO/IEC 18004) of a link as SVG, with the white border that readers need."""
    return str(segno.make(link, error="m").svg_inline(scale=4, border=4, light="#fff"))


def _link(study: Study) -> str:
    """Return the participants' link, with the scheme, host and port of this page."""
    parts = urlsplit(st.context.url or "")
    origin = f"{parts.scheme}://{parts.netloc}" if parts.netloc else "http://127.0.0.1:8501"
    return f"{origin}/run/{quote(study.name)}"
