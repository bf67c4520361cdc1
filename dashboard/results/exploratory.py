"""Exploratory analyses: measures one at a time, trials with their explanations, and models of participants."""

from __future__ import annotations

import streamlit as st

from dashboard.results import jobs as work
from dashboard.results.jobs import SEED, AnalysisResult
from dashboard.shared import live, numbers
from study.analysis import exploratory
from study.analysis.exploratory import Measure
from study.bundle import Manifest


def show(found: AnalysisResult, manifest: Manifest | None) -> None:
    """Show one measure, chosen by name."""
    offers = {offer.title: offer for offer in exploratory.offers(found.data.frame, seed=SEED, manifest=manifest)}
    choice = st.selectbox("Measure", offers, key="measure", bind="query-params", width=420)
    numbers.heading(choice, "exploratory")
    live.draw_when_ready(work.make_measure_task(found, offers[choice], manifest), _measure, "measure")


def _measure(measure: Measure) -> None:
    st.caption(measure.says)
    if measure.figure is None:
        numbers.table(measure.table, f"exploratory_{measure.name}")
    else:
        numbers.chart(measure.figure, measure.table, f"exploratory_{measure.name}")
