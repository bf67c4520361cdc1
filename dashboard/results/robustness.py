"""Robustness: the result without single participants or images, or under other choices, one at a time."""

from __future__ import annotations

import streamlit as st

from dashboard.results import jobs as work
from dashboard.results.draws import choose_draws
from dashboard.results.jobs import AnalysisResult
from dashboard.shared import live, numbers
from dashboard.shared.messages import escape_markdown
from study.analysis.bayes.sampler import SamplerSettings
from study.analysis.exploratory import analysis as exploratory
from study.analysis.exploratory.analysis import ExploratoryResult
from study.analysis.models.sentences import coverage_text
from study.analysis.words.wording import IN_WORDS


def show(result: AnalysisResult) -> None:
    """Show one analysis, chosen by name."""
    if unscored := exploratory.explain_unscored(result.data.task):
        st.info(unscored)
        return
    study = work.make_study(result)
    offered = {name: one for name, one in exploratory.list_analyses(study).items() if one.seconds is not None}
    names = {one.title: name for name, one in offered.items()}
    choice = st.selectbox("Analysis", names, key="robustness", bind="query-params", width=420)
    numbers.heading(choice, "exploratory")
    coverage = coverage_text(result.level)
    draws = choose_draws("robustness_draws") if offered[names[choice]].is_drawn else SamplerSettings.draws
    task = work.make_measure_task(result, names[choice], draws=draws)
    live.draw_when_ready(task, lambda made: _draw(made, coverage), "robustness")


def _draw(made: ExploratoryResult, coverage: str) -> None:
    st.markdown(f"**{escape_markdown(made.conclusion)}**")
    name = f"exploratory_{made.name}"
    if made.figure is None:
        numbers.table(made.table, name, IN_WORDS, coverage=coverage)
    else:
        numbers.chart(made.figure, made.table, name, IN_WORDS, coverage=coverage)
    st.caption(made.says)
