"""Evidence for no difference: equivalence tests and Bayes factors of the contrasts, as planned or on request."""

from __future__ import annotations

import streamlit as st

from dashboard.results.jobs import AnalysisResult
from dashboard.shared import numbers
from dashboard.shared.messages import escape_markdown, show_errors
from study.analysis.means import bayes_factors
from study.analysis.means.equivalence import read_points, write_bounds
from study.analysis.models.sentences import coverage_text, keep_whole
from study.analysis.planned import equivalence
from study.analysis.report import captions
from study.analysis.words.wording import IN_WORDS
from study.plan.equivalence import Bounds

LARGEST_SD = 10.0


def show(result: AnalysisResult) -> None:
    """Show the planned tests; of those that the plan does not name, fields to ask for them."""
    plan = None if result.plan is None else result.plan.plan
    bounds = None if plan is None else plan.equivalence
    prior_sd = None if plan is None else plan.prior_sd
    if result.data.task.is_scored:
        _ask_for_equivalence(result, bounds)
    numbers.heading("Bayes factors", result.label if prior_sd is not None else "exploratory")
    prior_sd = _choose_prior() if prior_sd is None else prior_sd
    if prior_sd is not None:
        table = bayes_factors.tabulate(result.contrasts, prior_sd)
        numbers.table(table, "bayes_factors", IN_WORDS, headings=captions.CONTRASTS)
        st.caption(bayes_factors.explain(prior_sd))


def _ask_for_equivalence(result: AnalysisResult, bounds: Bounds | None) -> None:
    """Show equivalence within the planned bounds, or within those of a field; they are percentages of responses."""
    numbers.heading("Equivalence", result.label if bounds is not None else "exploratory")
    with show_errors():
        bounds = _choose_bounds() if bounds is None else bounds
        if bounds is not None:
            _show_equivalence(result, bounds)


def _choose_bounds() -> Bounds | None:
    given = st.text_input(
        "Equivalence bounds (percentage points)",
        key="equivalence",
        placeholder="5 or -5, 10",
        width=280,
        help="The largest difference that would not matter. State it before you see the results: in the study file, "
        "`[analysis] equivalence = 5`.",
    )
    return read_points(given)


def _choose_prior() -> float | None:
    return st.number_input(
        "Prior SD (log-odds)",
        0.01,
        LARGEST_SD,
        None,
        0.1,
        key="prior_sd",
        placeholder="such as 0.5",
        width=280,
        help="The size of effect that is plausible. State it before you see the results: in the study file, "
        "`[analysis] prior_sd = 0.5`.",
    )


def _show_equivalence(result: AnalysisResult, bounds: Bounds) -> None:
    table = equivalence.tabulate(result.contrasts, bounds, result.level)
    st.markdown(f"**Within {write_bounds(bounds)} percentage points**")
    lines = equivalence.describe(table, bounds, result.level)
    st.markdown("\n".join(f"- {escape_markdown(keep_whole(line))}" for line in lines))
    numbers.table(table, "equivalence", IN_WORDS, coverage=coverage_text(2 * result.level))
    st.caption(equivalence.explain(result.level))
