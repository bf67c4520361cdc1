"""Replay one participation: its events along time, and each trial as the participant saw it."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
import streamlit as st
from PIL import Image

from dashboard.monitor import marks
from dashboard.monitor.choosing import choose_participant, require_chosen
from dashboard.monitor.watching import PAGES
from dashboard.shared import files
from dashboard.shared import service as door
from dashboard.shared.messages import escape_markdown, show_errors
from dashboard.shared.screens import draw_screen
from study.attributes.sets import name_set
from study.bundle import TYPE_LABELS, Bundle
from study.collection.replay import RESPONDED, Replay, ReplayedTrial, describe_response
from study.conditions import format_condition
from study.places.region import open_region
from study.plan.texts import texts_of
from study.tasks import find_task
from study.workspace.spreadsheets import csv_text

PLAIN = {"displaylogo": False, "displayModeBar": False}
PHASES = {"practice": "Practice", "catch": "Attention check"}
MARK_WIDTH = 320
"""Of an image with a participant's mark, px."""
RIGHT, WRONG, OTHER = "#2b8a6b", "#c4561e", "#8a90a0"


def show_replay(study: str, participants: Sequence[str]) -> None:
    """Draw the choice of a participant and, once it was asked for, the replay."""
    with st.expander("Replay a session"):
        st.caption(
            "What happened in one participation, and what was on the screen. It shows the condition and the responses: "
            "unblind the study first, or close it. The audit trail records each replay."
        )
        if not participants:
            st.caption("No participant has started yet.")
            return
        key = f"replay_{study}"
        with st.form(key, border=False):
            participant = choose_participant(participants, f"{key}_who")
            asked = st.form_submit_button("Replay and log")
        if asked:
            st.session_state.pop(f"{key}_made", None)
            with show_errors():
                require_chosen(participant)
                st.session_state[f"{key}_made"] = door.get_acting_researcher().replay(study, participant)
        made = st.session_state.get(f"{key}_made")
        if made is not None:
            _draw(made, key)


@st.fragment
def _draw(replay: Replay, key: str) -> None:
    condition = "not allocated" if replay.condition is None else format_condition(replay.condition)
    st.markdown(f"**{replay.participant}**, condition: {condition}, last page: {PAGES[replay.stage]}")
    st.plotly_chart(draw_timeline(replay), key=f"{key}_timeline", config=PLAIN)
    given = [trial for trial in replay.trials if trial.choice is not None]
    if given:
        _draw_trial(replay, given, key)
    with st.expander("All events"):
        st.caption(
            "Seconds since the study was opened, by the server's clock. A page sends its events with "
            "the next response or a little later."
        )
        st.dataframe(
            replay.timeline.rename(columns=str.capitalize),
            hide_index=True,
            key=f"{key}_events",
            column_config={"Seconds": st.column_config.NumberColumn(format="%.1f")},
        )
        name = f"{replay.participant}_events.csv"
        files.offer_download(name, lambda: csv_text(replay.timeline), name, "text/csv")


def draw_timeline(replay: Replay) -> go.Figure:
    """Draw each trial as a bar from its onset to its response, as high as the response time, and other events below."""
    figure, timeline = go.Figure(), replay.timeline
    _draw_responses(figure, replay)
    rest = timeline[timeline["event"] != RESPONDED]
    figure.add_scatter(
        x=rest["seconds"] / 60,
        y=[0] * len(rest),
        mode="markers",
        name="Other events",
        marker={"symbol": "line-ns-open", "size": 12, "color": OTHER},
        text=[" ".join(filter(None, pair)) for pair in zip(rest["event"], rest["detail"], strict=True)],
        hovertemplate="%{text}<extra></extra>",
    )
    figure.update_xaxes(title="Minutes since the study was opened", rangemode="tozero")
    figure.update_yaxes(title="Response time, s")
    legend = {"orientation": "h", "yanchor": "bottom", "y": 1}
    figure.update_layout(height=260, margin={"l": 0, "r": 0, "t": 8, "b": 0}, legend=legend)
    return figure


def _draw_responses(figure: go.Figure, replay: Replay) -> None:
    given = [trial for trial in replay.trials if trial.choice is not None]
    at = replay.timeline[replay.timeline["event"] == RESPONDED].set_index("trial")["seconds"]
    kinds = (("Correct", RIGHT, True), ("Not correct", WRONG, False), ("Response", OTHER, None))
    for label, colour, wanted in kinds:
        mine = [trial for trial in given if trial.correct is wanted]
        if wanted is None and not mine:
            continue
        figure.add_bar(
            x=[(at[trial.number] - trial.response["rt_ms"] / 2000) / 60 for trial in mine],
            y=[trial.response["rt_ms"] / 1000 for trial in mine],
            width=[trial.response["rt_ms"] / 60_000 for trial in mine],
            name=label,
            marker_color=colour,
            text=[f"Trial {trial.number}: {describe_response(trial)}" for trial in mine],
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        )


def _draw_trial(replay: Replay, given: list[ReplayedTrial], key: str) -> None:
    """Draw one trial, chosen by a slider, with what was chosen and what is right."""
    numbers = [trial.number for trial in given]
    chosen = st.select_slider("Trial", numbers, key=f"{key}_trial") if len(numbers) > 1 else numbers[0]
    trial = given[numbers.index(chosen)]
    kind = PHASES.get(trial.phase) or TYPE_LABELS[trial.trial.trial_type]
    st.markdown(f"Trial {trial.number}, {kind}: {escape_markdown(describe_response(trial))}")
    is_ai = "label" not in trial.screen and trial.trial.unit is None and trial.trial.attributes is None
    shown = "AI: the option that the AI predicts." if is_ai else "Correct: the right option."
    if trial.response["text"] is None:
        st.caption(f"{shown if trial.right else ''} Chosen: the participant's response.".strip())
    bundle, screen = _bundle_of(replay), trial.screen
    draw_screen(screen, bundle.asset, texts_of(bundle.manifest), _badges(trial))
    _draw_mark(trial, bundle)


def _draw_mark(trial: ReplayedTrial, bundle: Bundle) -> None:
    """Draw what the participant marked on the image, where that was asked."""
    kind, text, facts = find_task(bundle.manifest.config).place, trial.response["place"], trial.trial.region
    if kind is not None and text and facts is not None:
        with Image.open(bundle.asset(trial.trial.assets.target)) as image:
            drawn = marks.draw_mark(image, kind, text, open_region(facts))
        st.image(drawn, caption=marks.WORDS, width=MARK_WIDTH, alt=marks.WORDS)


def _badges(trial: ReplayedTrial) -> dict[str, list[str]]:
    if trial.trial.attributes is not None:
        return _mark_attributes(trial)
    mark = "Correct" if "label" in trial.screen or trial.trial.unit is not None else "AI"
    badges = {name: ["Requested" if trial.phase == "catch" else mark] for name in trial.right}
    if trial.response["text"] is None:
        badges.setdefault(str(trial.choice), []).append("Chosen")
    return badges


def _mark_attributes(trial: ReplayedTrial) -> dict[str, list[str]]:
    """Mark the attributes that the AI uses and those that were chosen."""
    facts, badges = trial.trial.attributes, {}
    if facts is not None:
        badges = {name: ["AI uses it"] for name, used in zip(facts.names, facts.used, strict=True) if used}
        for name in name_set(facts, trial.response["place"]) if trial.side else ():
            badges.setdefault(name, []).append("Chosen")
    return badges


def _bundle_of(replay: Replay) -> Bundle:
    folders = {status.study_hash: status.folder for status in door.get_acting_researcher().studies()}
    return Bundle(folders[replay.study_hash])
