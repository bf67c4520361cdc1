"""The parts of the page Monitor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dashboard.monitor.choosing import choose_participant, require_chosen
from dashboard.monitor.progress import COLOUR, use_whole_ticks
from dashboard.shared import links
from dashboard.shared import service as door
from dashboard.shared.closing import offer_close
from dashboard.shared.messages import escape_markdown, show_errors
from dashboard.shared.unblinding import ask_reason
from study.collection.access.permissions import Permission
from study.collection.monitor import STEP_NS, Monitor, Where
from study.collection.status import StudyStatus
from study.conditions import format_condition, name_place

MIB = 1 << 20
LEAST_STEPS = 12
"""Of five minutes on the axis of responses: an hour, in which a single bar does not fill the figure."""
WORDS = {
    "conflict": (
        "Repeated responses",
        "Second responses to the same trial, from another tab or browser. The first counts.",
    ),
    "storage_failed": (
        "No local storage",
        "Browsers that cannot keep a response until it is sent: a reload while offline loses it.",
    ),
    "offline": ("Lost connections", "Responses wait in the browser until the connection is back."),
    "unknown_parameters": (
        "Links with an unknown ID",
        "Participants whose link has a parameter that Foretell does not know: they take part anonymously, their ID is "
        "not stored. Write pid=… in the link at the service.",
    ),
    "translated": (
        "Translated pages",
        "Participants whose browser translated the page; class names and codes are left.",
    ),
}
COLOURS: dict[str, Literal["green", "orange", "gray"]] = {"open": "green", "paused": "orange", "closed": "gray"}
HELP = {"Pause": "New participants are asked to come back later. Participants who have started can finish."}
OUTCOMES: dict[str, Any] = {
    "condition": "Condition",
    "begun": "Started",
    "done": "Completed",
    "responses": "Responses",
    "accuracy": st.column_config.NumberColumn("Accuracy", format="percent"),
    "mean_level": st.column_config.NumberColumn("Mean level", format="%.2f"),
    "median_rt_ms": "Median response time, ms",
}
"""The columns of the table of outcomes, in the words of the page."""
QUOTAS = {
    "places": "Quota", "open": "Free", "held": "In progress", "done": "Completed"
}  # fmt: skip
"""The columns of the table of quotas, in the words of the page."""
SITTINGS = {
    "sitting": "Sitting",
    "started": "Started",
    "ended": "Finished",
    "waiting": "May still start",
    "missed": "Did not return",
}
"""The columns of the table of sittings, in the words of the page."""
PAGES = {
    "consent": "Consent",
    "instructions": "Instructions",
    "check": "Comprehension check",
    "example": "Example",
    "practice": "Practice",
    "main": "Trials",
    "between": "Between sittings",
    "questionnaire": "Questionnaire",
    "debrief": "Debriefing",
    "done": "Completed",
    "declined": "Declined",
    "screened": "Screened out",
    "full": "Quota full",
    "expired": "Out of time",
    "withdrawn": "Withdrawn",
}
"""The page that a participant is on, by the stage of their session."""
STATUS: dict[Where, tuple[str, str]] = {
    "waiting": ("Reading", "On a page before or after the trials."),
    "responding": ("Responding", "In the trials."),
    "between": ("Between sittings", "Finished a sitting, and the next one is still to come."),
    "silent": ("Inactive", "Started, with no activity for ten minutes."),
    "finished": ("Completed", "With a completion code."),
    "ended": ("Ended early", "Declined, screened out, too late, out of time or withdrawn."),
}
"""Where a participant is, in the words of the page, and what that means."""


def show_pause_and_close(study: str, version: StudyStatus) -> None:
    """Show whether new participants can start, and the buttons that change it."""
    service, state = door.get_acting_researcher(), version.state if version.state in COLOURS else "closed"
    if not service.may(Permission.COLLECT, study):
        st.badge(state, color=COLOURS[state])
        return
    acts: dict[str, Callable[[], object]] = {}
    if state == "open":
        acts["Pause"] = lambda: service.pause_study(study)
    if state == "paused":
        acts["Resume"] = lambda: service.resume_study(study)
    if state == "closed":
        acts["Reopen"] = lambda: service.open_study(version.folder, version.quota)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(state, color=COLOURS[state])
        for label, act in acts.items():
            kind: Literal["primary", "secondary"] = "primary" if label in ("Resume", "Reopen") else "secondary"
            if st.button(label, type=kind, help=HELP.get(label), key=f"monitor_{label}"):
                act()
                st.rerun()
        if state != "closed":
            offer_close(study, "monitor_Close")


def show_clock_jump(seen: Monitor) -> None:
    """Show whether the server's clock has jumped, and the button that confirms it."""
    if not seen.clock_jump_ns:
        return
    hours = seen.clock_jump_ns / 3600e9
    st.error(
        f"The server's clock is {abs(hours):,.1f} hours {'ahead of' if hours > 0 else 'behind'} the time reached "
        "before: the server was off, or its clock is wrong. Until this is resolved, no session times out, no quota "
        "place is reallocated and no id is erased."
    )
    if not door.get_acting_researcher().may(Permission.ADMINISTER):
        st.caption("An administrator can confirm the clock.")
    elif st.button("The clock is correct", help="Check the date and time of the server first.", key="monitor_clock"):
        door.get_acting_researcher().confirm_time()
        st.rerun()


def show_low_disk(seen: Monitor) -> None:
    """Warn while so little space is free that no new participant is admitted."""
    if seen.disk_is_low:
        st.error("Less than 1 GiB of disk space is free. Pause the study and free space, or responses will be lost.")


def show_counts(seen: Monitor) -> None:
    """Show how many participants are at each stage."""
    shown = {where: said for where, said in STATUS.items() if where != "between" or len(seen.sittings)}
    grid = st.grid(len(shown), min_column_width=120)
    for where, (label, says) in shown.items():
        grid.metric(label, f"{seen.count(where):,}", border=True, help=says)


def show_allocation(seen: Monitor) -> None:
    """Show the quotas by condition, or by order of conditions where each participant sees all of them."""
    st.header("Quotas", anchor=False)
    words = QUOTAS | {"condition": name_place(next(iter(seen.places["condition"]), ""))}
    st.table(_write_conditions(seen.places).rename(columns=words), border="horizontal", hide_index=True)


def show_sittings(study: str, seen: Monitor) -> None:
    """Show how many participants are in which sitting, and offer the links of those who are to return."""
    if seen.sittings.empty:
        return
    st.header("Sittings", anchor=False)
    st.table(seen.sittings.rename(columns=SITTINGS), border="horizontal", hide_index=True)
    if not door.get_acting_researcher().may(Permission.MANAGE_PARTICIPANTS, study):
        return
    st.caption(
        "Participants see their personal link at the end of a sitting. To send it to them as well, for example by the "
        f"messages of the recruitment service, run on the server: `python foretell.py links {study} --sittings`"
    )


def show_throughput(seen: Monitor) -> None:
    """Show the responses over time."""
    st.header("Responses per five minutes", anchor=False)
    if seen.throughput.empty:
        st.caption("None yet.")
        return
    bars = go.Bar(
        x=seen.throughput["time"],
        y=seen.throughput["responses"],
        marker_color=COLOUR,
        width=STEP_NS / 1e6,  # ms; else a single bar is as wide as the axis, which then is a few microseconds long
        hovertemplate="%{x|%H:%M} UTC: %{y}<extra></extra>",
    )
    figure = go.Figure(bars).update_layout(height=220, margin={"l": 0, "r": 0, "t": 8, "b": 0}, bargap=0.15)
    figure.update_yaxes(rangemode="tozero", fixedrange=True, **use_whole_ticks(seen.throughput["responses"].max()))
    figure.update_xaxes(fixedrange=True, tickformat="%H:%M", range=choose_time_range(seen.throughput["time"]))
    st.plotly_chart(figure, key="monitor_throughput", config={"displayModeBar": False})


def choose_time_range(times: pd.Series[datetime]) -> tuple[datetime, datetime]:
    """Return the ends of the axis of responses, `LEAST_STEPS` apart or more."""
    step = timedelta(seconds=STEP_NS / 1e9)
    return min(times.min() - step, times.max() - LEAST_STEPS * step), times.max() + step


def show_participants(study: str, seen: Monitor, *, is_open: bool) -> None:
    """Show all participants with their quality flags."""
    st.header("Participants", anchor=False)
    everyone = seen.participants
    if everyone.empty:
        st.caption("No participant has started yet.")
        if is_open:
            links.show_link("Get the link to send to participants", "studies", study=study)
        return
    odd = everyone[everyone["flags"] != ""]
    if len(odd):
        st.warning(
            f"Participants flagged for review: {len(odd)} of {len(everyone)}. A flag alone excludes no participant."
        )
    st.dataframe(
        _tabulate_participants(everyone),
        hide_index=True,
        key="monitor_people",
        column_config={
            "participant": "Participant",
            "where": "Status",
            "stage": "Page",
            "trial": _describe_trials(everyone),
            "minutes": st.column_config.DatetimeColumn("Last activity", format="distance"),
            "flags": st.column_config.TextColumn("Flags", width="large"),
        },
    )


def _tabulate_participants(everyone: pd.DataFrame) -> pd.DataFrame:
    """Return participants with the words of their status and page, and the time of their last activity."""
    return everyone.assign(
        where=everyone["where"].map({where: label for where, (label, _) in STATUS.items()}),
        stage=everyone["stage"].map(lambda stage: PAGES.get(stage, stage)),
        minutes=pd.Timestamp.now("UTC") - pd.to_timedelta(everyone["minutes"], unit="min"),
    ).drop(columns="of")


def _describe_trials(everyone: pd.DataFrame) -> Any:
    """Describe the column of trials: a count, of all trials where these are as many for every participant."""
    most = int(everyone["of"].max())
    every = f"%d of {most}" if everyone["of"].nunique() == 1 else "%d"
    return st.column_config.ProgressColumn("Trials", min_value=0, max_value=max(most, 1), format=every)


def show_removal_form(study: str, participants: Sequence[str]) -> None:
    """Release or exclude a participant with a logged reason, and list those excluded."""
    service = door.get_acting_researcher()
    with st.expander("Release or exclude a participant"):
        st.caption(
            "Releasing opens an unfinished participant's part of the quota for another participant. Excluding also "
            "leaves their responses out of results and export, and opens the quota after a completed participation, "
            "too; the table of participants keeps the reason."
        )
        with st.form(f"remove_{study}", border=False):
            participant = choose_participant(participants, f"remove_who_{study}")
            reason = st.text_input("Reason", key="remove_why", max_chars=300)
            with st.container(horizontal=True):
                released = st.form_submit_button("Release from the quota")
                excluded = st.form_submit_button("Exclude this participant")
        if released or excluded:
            with show_errors():
                require_chosen(participant)
                act = service.release_quota_place if released else service.exclude
                act(study, participant, reason)
                done = "is released: the quota is open for another participant" if released else "is excluded"
                st.success(escape_markdown(f"{participant} {done}."))
        left_out = service.exclusions(study)
        if len(left_out):
            st.dataframe(left_out.rename(columns=str.capitalize), hide_index=True, key="monitor_exclusions")


def show_problems(seen: Monitor) -> None:
    """Show problems and the free storage."""
    st.header("Problems and storage", anchor=False)
    grid = st.grid(3, min_column_width=200)
    for what, count in seen.incidents.itertuples(index=False):
        label, explained = WORDS[what]
        grid.metric(label, f"{count:,}", help=explained)
    free, used = seen.free_bytes / MIB / 1024, seen.database_bytes / MIB
    st.caption(f"{free:,.1f} GiB of disk space free; the databases use {used:,.1f} MiB.")


def show_unblinding_form(study: str) -> None:
    """Show the form that unblinds: outcomes by condition, for a logged reason."""
    with st.expander("Unblind: view outcomes before the end"):
        reason = ask_reason(study)
        if reason is not None:
            with show_errors():
                table = door.get_acting_researcher().unblind(study, reason)
                st.warning(f"Logged: the outcomes of {escape_markdown(study)} were viewed. Interim, and not planned.")
                st.dataframe(_write_conditions(table), hide_index=True, column_config=OUTCOMES)


def _write_conditions(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(condition=table["condition"].map(format_condition))
