"""What was collected, and what the plan leaves out of it: before any result."""

from __future__ import annotations

import streamlit as st

from dashboard.results.jobs import Sample
from dashboard.shared import numbers
from study.analysis.responses import Responses


def show(data: Responses) -> None:
    """What was said about the rows, counts, and who answered how much."""
    for message in data.messages:
        st.warning(message)
    counts = {
        "Participants": data.frame["participant"].nunique(),
        "Answers": len(data.frame),
        "Target categories": data.frame["category"].nunique(),
        "Rows left out": data.dropped,
    }
    grid = st.grid(len(counts), min_column_width=130)
    for label, count in counts.items():
        grid.metric(label, f"{count:,}")
    with st.expander("By condition"):
        numbers.table(data.quality(), "quality")


def exclusions(found: Sample) -> None:
    """Whom and what the plan leaves out, rule by rule, and whether collection is over."""
    if found.plan is None:
        st.caption("No analysis plan applies: nobody is excluded, and everything here is exploratory.")
        return
    say = st.success if found.plan.final else st.warning
    say(found.plan.stopping)
    rules = found.plan.exclusions
    if rules.empty:
        st.caption("The plan excludes nobody.")
        return
    people, answers = int(rules["people"].sum()), int(rules["answers"].sum())
    stay = found.data.frame
    with st.expander(
        f"The plan excludes {people:,} people and {answers:,} answers; "
        f"{stay['participant'].nunique():,} people and {len(stay):,} answers stay",
        expanded=answers > 0,
    ):
        numbers.table(rules, "exclusions")
