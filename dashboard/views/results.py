"""Results: choose responses, look at their quality first, then at what they say."""

from __future__ import annotations

import streamlit as st

from dashboard import analysiswork
from dashboard.widgets import answers, checks, exploring, findings, quality, reporting
from dashboard.widgets.answers import Chosen
from dashboard.widgets.live import awaited
from dashboard.widgets.messages import errors_shown
from study.preregistration import Plan

ANSWER, EXPLORATORY = "Answer", "Exploratory"
SECTIONS = {
    ANSWER: findings.answer,
    "Models": findings.models,
    "Contrasts": findings.contrasts,
    "Checks": checks.show,
    EXPLORATORY: None,
    "Report": reporting.show,
}


def page() -> None:
    """The whole page."""
    st.title("Results", anchor=False)
    st.caption(
        "What was collected, whether explanations changed how well people foretell the AI, and how sure that is."
    )
    with errors_shown():
        chosen = answers.choose("results")
        if chosen is not None:
            _shown(chosen)


def _shown(chosen: Chosen) -> None:
    quality.show(chosen.data)
    found = awaited(analysiswork.analysed(chosen.data, _plan(chosen)).ask())
    if found is None:
        return
    quality.exclusions(found)
    section = st.segmented_control(
        "Section",
        SECTIONS,
        default=ANSWER,
        required=True,
        key="section",
        bind="query-params",
        label_visibility="collapsed",
    )
    show = SECTIONS[section]
    with errors_shown():
        if show is None:
            exploring.show(found, chosen.bundle.manifest if chosen.bundle else None)
        else:
            show(found)


def _plan(chosen: Chosen) -> Plan | None:
    """The frozen plan, unless the reader leaves it out."""
    plan = chosen.plan
    if plan is None:
        return None
    kept = st.toggle(
        "As planned",
        value=True,
        key="planned",
        bind="query-params",
        help="The study's plan is executed as it was frozen. Without it nobody is excluded, the paper's models are "
        "fitted, and everything is exploratory.",
    )
    return plan if kept else None
