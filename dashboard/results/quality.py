"""The data behind a result: counts, and the plan's exclusions."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.results.jobs import Sample
from dashboard.shared import numbers
from study.analysis.models.convergence import FEW
from study.analysis.responses.accuracies import order
from study.analysis.responses.notices import BADGES, MODES
from study.analysis.responses.reading import Responses
from study.analysis.words.wording import IN_WORDS
from study.bundle import Manifest

FEW_PER_CONDITION = 2
"""Participants per condition, on average, from which the page shows what models say: they estimate how participants
of one condition differ."""
PER_PARTICIPANT = {"fewest": "Fewest per participant", "most": "Most per participant"}


def show(data: Responses) -> None:
    """Show counts, and the responses by condition."""
    counts = {
        "Participants": data.frame["participant"].nunique(),
        "Responses": len(data.frame),
        "Predicted classes": data.frame["category"].nunique(),
        "Rows excluded": data.dropped,
    }
    grid = st.grid(len(counts), min_column_width=130)
    for label, count in counts.items():
        grid.metric(label, f"{count:,}")
    for message in _list_mode_messages(data):
        st.warning(message)
    with st.expander("By condition"):
        numbers.table(count_by_condition(data.frame), "quality", IN_WORDS, headings=PER_PARTICIPANT)


def _list_mode_messages(data: Responses) -> list[str]:
    return [message for message in data.messages if message.startswith(tuple(MODES.values()))]


def list_messages(data: Responses) -> list[str]:
    """List what a reader must know of the data, besides that participants are simulated: a badge says so."""
    return [message for message in data.messages if message not in _list_mode_messages(data)]


def show_modes(data: Responses) -> None:
    """Draw a badge for responses that are no evidence about people."""
    for mode, words in BADGES.items():
        if any(message.startswith(MODES[mode]) for message in data.messages):
            st.badge(words, color="orange")


def count_by_condition(frame: pd.DataFrame) -> pd.DataFrame:
    """Count per condition: participants, responses, and the fewest and most responses of one participant."""
    responses = frame.groupby(["condition", "participant"]).size().groupby("condition")
    table = responses.agg(["size", "sum", "min", "max"]).loc[order(frame)]
    return table.set_axis(["participants", "responses", "fewest", "most"], axis=1).reset_index()


def show_incomplete(sample: Sample) -> None:
    """Say, next to the badges, that the plan does not end here: more responses are to come."""
    if sample.plan is not None and not sample.plan.final:
        st.caption(sample.plan.stopping, width="content")


def show_too_few(sample: Sample, manifest: Manifest | None) -> bool:
    """Tell whether there are too few participants for models, and warn if so; ``manifest`` knows all conditions."""
    every = sample.data.every
    people, met = every["participant"].nunique(), every["condition"].nunique()
    conditions = met if manifest is None else max(met, len(manifest.conditions))
    needed = max(FEW, FEW_PER_CONDITION * conditions)
    if people >= needed:
        return False
    where = f"{met} of {conditions} conditions" if met < conditions else "every condition"
    st.warning(
        f"Too few participants for models: {people} so far, in {where}; the main result needs at least {needed}. "
        "Figure 1 and the counts are below."
    )
    return True


def show_exclusions(sample: Sample) -> None:
    """Show the plan's exclusions, rule by rule, and how the collection ended."""
    if sample.plan is None:
        st.caption("No analysis plan applies: no exclusion rules, and everything here is exploratory.")
        _counts(sample.data.excluded, sample)
        return
    if sample.plan.final:
        st.success(sample.plan.stopping)
    rules = sample.plan.exclusions
    if rules.empty:
        st.caption("The plan has no exclusion rules.")
        return
    _counts(rules, sample)


def _counts(rules: pd.DataFrame, sample: Sample) -> None:
    """Count what was excluded, rule by rule; nothing without rules."""
    if rules.empty:
        return
    people, responses = int(rules["people"].sum()), int(rules["responses"].sum())
    stay = sample.data.frame
    with st.expander(
        f"Excluded: {people:,} participants and {responses:,} responses; "
        f"{stay['participant'].nunique():,} participants and {len(stay):,} responses remain",
        expanded=responses > 0,
    ):
        numbers.table(rules, "exclusions")
