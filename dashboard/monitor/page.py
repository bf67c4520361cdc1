"""Monitor: how a collection goes, blinded; and how it is stopped and begun again."""

from __future__ import annotations

import streamlit as st

from dashboard.monitor import interim_analyses, watching
from dashboard.shared import service
from dashboard.shared.messages import errors_shown
from study.collection.status import StudyStatus

EVERY_S = 5


def page() -> None:
    """The whole page."""
    st.title("Monitor", anchor=False)
    st.caption("Who is where, and whether the data are good. Blinded: nothing here tells how well any group does.")
    with errors_shown():
        names = list(dict.fromkeys(status.name for status in reversed(service.service().researcher.studies())))
        if not names:
            st.info("No study was opened yet. Open one on the page Studies.")
            return
        study = st.selectbox("Study", names, key="monitor_study", bind="query-params", width=420)
        watched(study)
        watching.removing(study)
        interim_analyses.show(study)
        st.divider()
        watching.unblinding(study)


@st.fragment(run_every=EVERY_S)
def watched(study: str) -> None:
    """What refreshes itself."""
    with errors_shown():
        seen = service.service().researcher.monitor(study)
        versions = [status for status in service.service().researcher.studies() if status.name == study]
        watching.gate(study, _newest(versions))
        watching.clock(seen)
        watching.numbers(seen)
        places, time = st.columns(2, gap="large")
        with places:
            watching.places(seen)
        with time:
            watching.throughput(seen)
        watching.people(seen)
        watching.trouble(seen)


def _newest(versions: list[StudyStatus]) -> StudyStatus:
    """The open version, or else the one opened last."""
    return next((version for version in versions if version.state in ("open", "paused")), versions[-1])
