"""The teaching sets of a trial by policy: a card for each, and a table."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.names import format_name, lower_first, upper_first
from core.teaching.policies import POLICIES
from core.types import TeachingSet
from dashboard.shared import numbers
from dashboard.shared.messages import escape_markdown
from dashboard.teaching.jobs import LessonResult
from study.bundle import Trial
from study.conditions import CONDITIONS, format_condition

EXAMPLE = 68
"""Width of an example in a card, px: two side by side, with a gap."""
BEFORE, AFTER, SCORED = "P before", "P after", "Sets scored"
HEADINGS = {
    "p_prior": BEFORE,
    "p_learner": AFTER,
    "gain": "Gain (log-odds)",
    "rank": "Random sets with no higher P",
    "scored": SCORED,
}


def show_sets(taught: LessonResult, trial: Trial, conditions: Sequence[str]) -> None:
    """Show a card for each policy's set, and a table of all."""
    lesson = taught.lesson
    grid = st.grid(len(lesson.sets), min_column_width=180)
    for policy, chosen in lesson.sets.items():
        with grid.container(border=True, height="stretch"):
            shown = [name for name in conditions if CONDITIONS[name].policy == policy]
            _show_set(taught, policy, chosen, trial, shown)
    for policy in (name for name in POLICIES if name not in lesson.sets):
        st.caption(
            f"{format_name(policy)} has no set: P exceeds {taught.settings.threshold:.0%} after none of the sets drawn."
        )
    with st.expander("Data table"):
        words: numbers.Words = {
            "policy": format_name,
            "p_prior": write_share,
            "p_learner": write_share,
            "rank": write_share,
        }
        numbers.table(taught.set_table(), "teaching-sets", words, headings=HEADINGS)


def write_share(value: float) -> str:
    """Write a share in percent."""
    return f"{value:.1%}"


def _show_set(taught: LessonResult, policy: str, chosen: TeachingSet, trial: Trial, conditions: list[str]) -> None:
    """Show a policy's set; ``conditions`` of the study show it next to the study's own.

    What may wrap comes last: the images of all cards are at the same height.
    """
    st.markdown(f"**{format_name(policy)}**{' :green-badge[this study]' if policy == trial.teaching.policy else ''}")
    st.markdown(f"{AFTER}: {write_share(chosen.p_learner)}")
    half = len(chosen.indices) // 2
    pairs = st.container(horizontal=True)  # side by side where there is room, as on a phone
    for category, part in ((trial.target, chosen.indices[:half]), (trial.alternative, chosen.indices[half:])):
        with pairs.container(width="content"):
            st.caption(escape_markdown(category))
            with st.container(horizontal=True, gap="xsmall", width="content"):
                for k, i in enumerate(part, 1):
                    st.image(taught.thumbnails[taught.lesson.ids[i]], width=EXAMPLE, alt=f"Example {k} of {category}")
    reason = POLICIES[policy].reason.format(scored=chosen.scored, threshold=taught.settings.threshold)
    st.caption(f"{upper_first(reason)}.")
    if conditions:
        st.caption(f"Shown in the condition {', '.join(lower_first(format_condition(name)) for name in conditions)}.")
