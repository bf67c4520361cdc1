"""Exploratory analyses: measures one at a time, trials with their explanations, and models of participants."""

from __future__ import annotations

import streamlit as st

from dashboard.results import jobs as work
from dashboard.results.jobs import SEED, AnalysisResult
from dashboard.shared import live, numbers
from dashboard.shared.messages import escape_markdown
from study.analysis.exploratory import analysis as exploratory
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryResult
from study.analysis.words.wording import IN_WORDS
from study.bundle import Manifest


def show(result: AnalysisResult, manifest: Manifest | None) -> None:
    """Show one measure, chosen by name."""
    study = AnalysedStudy(result.data, SEED, manifest)  # without models: their checks have a section of their own
    names = {analysis.title: name for name, analysis in exploratory.list_analyses(study).items()}
    choice = st.selectbox("Measure", names, key="measure", bind="query-params", width=420)
    numbers.heading(choice, "exploratory")
    live.draw_when_ready(work.make_measure_task(result, names[choice], manifest), _measure, "measure")


def _measure(measure: ExploratoryResult) -> None:
    st.caption(measure.says)
    if measure.conclusion:
        st.markdown(escape_markdown(measure.conclusion))
    if measure.figure is None:
        numbers.table(measure.table, f"exploratory_{measure.name}", IN_WORDS)
    else:
        numbers.chart(measure.figure, measure.table, f"exploratory_{measure.name}", IN_WORDS)
