"""Monitor: the progress of a collection, blinded, with controls to pause, close and reopen it."""

from __future__ import annotations

import streamlit as st

from dashboard.monitor import interim_analyses, messages, progress, replay, watching, withdrawal
from dashboard.shared import links, service
from dashboard.shared.messages import escape_markdown, show_errors
from study.collection.access.permissions import Permission
from study.collection.status import StudyStatus

EVERY_S = 5
STORAGE_EVERY_S = 30


def page() -> None:
    """Draw the page."""
    st.title("Monitor", anchor=False)
    st.caption(
        "Progress of participants and quality of the data. Blinded: nothing here shows how well any condition performs."
    )
    with show_errors():
        show_storage_fault()
        versions = service.get_acting_researcher().studies()
        opened = {status.name for status in versions if status.quota}  # others were only simulated or previewed
        names = list(dict.fromkeys(status.name for status in reversed(versions) if status.name in opened))
        if not names:
            st.info("No study has been opened yet. Open one on the page Studies.")
            links.show_link("Studies", "studies")
            return
        study = links.selectbox("Study", names, names[0], key="study", width=420)
        links.show()
        _show_study(study)


def _show_study(study: str) -> None:
    """Draw the collection of a study, and what the account may do with it."""
    researcher = service.get_acting_researcher()
    if study in researcher.list_coded_studies():
        links.show_link("Code the texts", "coding", study=study)
    participants = show_monitor(study)
    if researcher.may(Permission.MANAGE_PARTICIPANTS, study):
        watching.show_removal_form(study, participants)
        withdrawal.show_withdrawal_form(study, participants)
        withdrawal.show_data_form(study, participants)
        messages.show_messages(study, participants)
    interim_analyses.show(study)
    st.divider()
    refusal = researcher.explain_refusal(Permission.SEE_OUTCOMES, study)
    if refusal is None:
        watching.show_unblinding_form(study)
        replay.show_replay(study, participants)
    else:
        st.caption(escape_markdown(refusal))
    show_storage(study)


@st.fragment(run_every=EVERY_S)
def show_storage_fault() -> None:
    """Say why no response is stored any more, if so."""
    fault = service.get_acting_researcher().explain_storage_fault()
    if fault is not None:
        st.error(f"**No response is stored.** {escape_markdown(fault)}")


@st.fragment(run_every=EVERY_S)
def show_monitor(study: str) -> list[str]:
    """Draw the part that refreshes itself; return the participants, the newest first."""
    participants: list[str] = []
    with show_errors():
        seen = service.get_acting_researcher().monitor(study)
        versions = [status for status in service.get_acting_researcher().studies() if status.name == study]
        newest = _newest(versions)
        watching.show_pause_and_close(study, newest)
        watching.show_clock_jump(seen)
        watching.show_low_disk(seen)
        watching.show_counts(seen)
        places, time = st.columns(2, gap="large")
        with places:
            watching.show_allocation(seen)
        with time:
            watching.show_throughput(seen)
        watching.show_sittings(study, seen)
        progress.show_progress(seen)
        watching.show_participants(study, seen, is_open=newest.state == "open")
        participants = list(seen.participants["participant"])
    return participants


@st.fragment(run_every=STORAGE_EVERY_S)
def show_storage(study: str) -> None:
    """Draw the problems and the storage, which refresh themselves less often."""
    with show_errors():
        watching.show_problems(service.get_acting_researcher().monitor(study))


def _newest(versions: list[StudyStatus]) -> StudyStatus:
    """Return the open version, or else the one opened last."""
    opened = [version for version in versions if version.quota]
    return next((version for version in opened if version.state in ("open", "paused")), opened[-1])
