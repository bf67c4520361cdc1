"""The parts of the page Monitor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import plotly.graph_objects as go
import streamlit as st

from dashboard.shared import service as door
from dashboard.shared.messages import escape_markdown, show_errors
from study.collection.monitor import STEP_NS, Monitor
from study.collection.status import StudyStatus

MIB = 1 << 20
WORDS = {
    "conflict": "Second answers to the same trial (the first stands)",
    "storage_failed": "Pages that could keep nothing in their browser",
    "offline": "Connections lost",
}
COLOURS: dict[str, Literal["green", "orange", "gray"]] = {"open": "green", "paused": "orange", "closed": "gray"}
HELP = {
    "Pause": "Nobody new is let in and is asked to come later; who has begun may finish.",
    "Close": "Nobody new is let in and is told that the study has ended; who has begun may finish.",
}
SHARE = st.column_config.NumberColumn("Accuracy", format="percent")


def show_pause_and_close(study: str, version: StudyStatus) -> None:
    """Whether new people are let in, and the button that changes it."""
    service, state = door.get_acting_researcher(), version.state if version.state in COLOURS else "closed"
    acts: dict[str, Callable[[], object]] = {}
    if state == "open":
        acts["Pause"] = lambda: service.pause_study(study)
    if state == "paused":
        acts["Go on"] = lambda: service.resume_study(study)
    if state == "closed":
        counts = version.slots.get("live", {}).values()
        acts["Open again"] = lambda: service.open_study(version.folder, max(sum(n.values()) for n in counts))
    else:
        acts["Close"] = lambda: service.close_study(study)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(state, color=COLOURS[state])
        for label, act in acts.items():
            kind: Literal["primary", "secondary"] = "primary" if label in ("Go on", "Open again") else "secondary"
            if st.button(label, type=kind, help=HELP.get(label), key=f"monitor_{label}"):
                act()
                st.rerun()


def show_clock_jump(seen: Monitor) -> None:
    """Whether the server's clock has jumped, and the button that takes it as right."""
    if not seen.clock_jump_ns:
        return
    hours = seen.clock_jump_ns / 3600e9
    st.error(
        f"The server's clock is {abs(hours):,.1f} hours {'ahead of' if hours > 0 else 'behind'} the time reached "
        "before: the server was off, or its clock is wrong. Until this is settled no participation runs out of time, "
        "no place is given to another participant and no id is erased."
    )
    if st.button("The clock is right", help="Check the date and time of the server first.", key="monitor_clock"):
        door.get_acting_researcher().confirm_time()
        st.rerun()


def show_counts(seen: Monitor) -> None:
    """How many people are where."""
    grid = st.grid(5, min_column_width=120)
    shown = {
        "Reading": (seen.count("waiting"), "On a page before or after the trials."),
        "Answering": (seen.count("answering"), "In the trials."),
        "Silent": (seen.count("silent"), "Begun, and not heard of for ten minutes."),
        "Finished": (seen.count("finished"), "With a completion code."),
        "Ended early": (seen.count("ended"), "Declined, screened out, too late, out of time or withdrawn."),
    }
    for label, (count, says) in shown.items():
        grid.metric(label, f"{count:,}", border=True, help=says)


def show_allocation(seen: Monitor) -> None:
    """The allocation."""
    st.subheader("Places", anchor=False)
    st.table(seen.places.rename(columns=str.capitalize), border="horizontal", hide_index=True)


def show_throughput(seen: Monitor) -> None:
    """Answers over time."""
    st.subheader("Answers in five minutes", anchor=False)
    if seen.throughput.empty:
        st.caption("None yet.")
        return
    bars = go.Bar(
        x=seen.throughput["time"],
        y=seen.throughput["answers"],
        width=STEP_NS / 1e6,  # ms; else a single bar is as wide as the axis, which then is a few microseconds long
        hovertemplate="%{x|%H:%M} UTC: %{y}<extra></extra>",
    )
    figure = go.Figure(bars).update_layout(height=220, margin={"l": 0, "r": 0, "t": 8, "b": 0}, bargap=0.15)
    figure.update_yaxes(rangemode="tozero", fixedrange=True).update_xaxes(fixedrange=True, tickformat="%H:%M")
    st.plotly_chart(figure, key="monitor_throughput", config={"displayModeBar": False})


def show_participants(seen: Monitor) -> None:
    """Everybody, and what is odd about whom."""
    st.subheader("People", anchor=False)
    odd = seen.people[seen.people["flags"] != ""]
    if len(odd):
        st.warning(
            f"{len(odd)} of {len(seen.people)} people give reason to look closer. Flags exclude nobody by themselves."
        )
    share = seen.people.assign(trial=seen.people["trial"] / seen.people["of"].clip(lower=1)).drop(columns="of")
    st.dataframe(
        share,
        hide_index=True,
        key="monitor_people",
        column_config={
            "participant": "Participant",
            "where": "Where",
            "stage": "Page",
            "trial": st.column_config.ProgressColumn("Trials", min_value=0, max_value=1, format="percent"),
            "minutes": st.column_config.NumberColumn("Last heard of", format="%.1f min ago"),
            "flags": st.column_config.TextColumn("Flags", width="large"),
        },
    )


def show_removal_form(study: str) -> None:
    """Release a place or exclude a participant with a logged reason, and list those excluded."""
    service = door.get_acting_researcher()
    with st.expander("Release a place or exclude a participant"):
        st.caption(
            "Releasing gives an unfinished participant's place to another. Excluding also leaves their responses out "
            "of results and export, and gives a finished place away; the table of participants keeps the reason."
        )
        with st.form(f"remove_{study}", border=False):
            participant = st.text_input("Participant", key="remove_who", max_chars=40, placeholder="P…")
            reason = st.text_input("Reason", key="remove_why", max_chars=300)
            with st.container(horizontal=True):
                released = st.form_submit_button("Release this place")
                excluded = st.form_submit_button("Exclude this participant")
        if released or excluded:
            with show_errors():
                act = service.release_quota_place if released else service.exclude
                act(study, participant.strip(), reason)
                done = "Their place is open again." if released else "The participant is excluded."
                st.success(f"{escape_markdown(participant.strip())}: {done}")
        left_out = service.exclusions(study)
        if len(left_out):
            st.dataframe(left_out.rename(columns=str.capitalize), hide_index=True, key="monitor_exclusions")


def show_problems(seen: Monitor) -> None:
    """What went wrong, and whether there is room for more."""
    st.subheader("Troubles and disk", anchor=False)
    if seen.disk_is_low:
        st.error("Less than 1 GiB is free on the disk. Pause the study and make room before answers cannot be kept.")
    grid = st.grid(3, min_column_width=200)
    for what, count in seen.incidents.itertuples(index=False):
        grid.metric(WORDS[what], f"{count:,}")
    free, used = seen.free_bytes / MIB / 1024, seen.database_bytes / MIB
    st.caption(f"{free:,.1f} GiB free on the disk; the databases take {used:,.1f} MiB.")


def show_unblinding_form(study: str) -> None:
    """Outcomes by condition, for a reason that is kept."""
    with st.expander("Look at outcomes before the end"):
        st.caption(
            "Whoever has seen how the groups do can no longer decide without bias when to stop or whom to leave out. "
            "That you looked, when and why goes into the audit trail, which cannot be changed. This is no planned "
            "look: it ends no collection."
        )
        with st.form(f"unblind_{study}", border=False):
            reason = st.text_input("Why", key="unblind_reason", max_chars=300)
            asked = st.form_submit_button("Look and record it")
        if asked:
            with show_errors():
                table = door.get_acting_researcher().unblind(study, reason)
                st.warning(
                    f"Recorded: the outcomes of {escape_markdown(study)} were looked at. Interim, and not as planned."
                )
                st.dataframe(table, hide_index=True, column_config={"accuracy": SHARE})
