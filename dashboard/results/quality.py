"""The data behind a result: counts, and the plan's exclusions."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.results.jobs import Sample
from dashboard.shared import numbers
from study.analysis.responses import Responses


def show(data: Responses) -> None:
    """Show counts, and the responses by condition."""
    counts = {
        "Participants": data.frame["participant"].nunique(),
        "Responses": len(data.frame),
        "Target categories": data.frame["category"].nunique(),
        "Rows excluded": data.dropped,
    }
    grid = st.grid(len(counts), min_column_width=130)
    for label, count in counts.items():
        grid.metric(label, f"{count:,}")
    with st.expander("By condition"):
        numbers.table(data.quality(), "quality")


def show_incomplete(found: Sample) -> None:
    """Warn where the plan does not end here: more responses are to come."""
    if found.plan is not None and not found.plan.final:
        st.warning(found.plan.stopping)


def show_exclusions(found: Sample) -> None:
    """Show the plan's exclusions, rule by rule, and how the collection ended."""
    if found.plan is None:
        st.caption("No analysis plan applies: no exclusion rules, and everything here is exploratory.")
        _counts(found.data.excluded, found)
        return
    if found.plan.final:
        st.success(found.plan.stopping)
    rules = found.plan.exclusions
    if rules.empty:
        st.caption("The plan has no exclusion rules.")
        return
    _counts(rules, found)


def _counts(rules: pd.DataFrame, found: Sample) -> None:
    """Count what was excluded, rule by rule; nothing without rules."""
    if rules.empty:
        return
    people, answers = int(rules["people"].sum()), int(rules["answers"].sum())
    stay = found.data.frame
    with st.expander(
        f"Excluded: {people:,} participants and {answers:,} responses; "
        f"{stay['participant'].nunique():,} participants and {len(stay):,} responses remain",
        expanded=answers > 0,
    ):
        numbers.table(rules, "exclusions")
