"""Results: choose responses, look at their quality first, then at what they say."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard.results import checks, exploratory, findings, quality, reporting, responses
from dashboard.results import jobs as work
from dashboard.results.jobs import Analysed
from dashboard.results.responses import Chosen
from dashboard.shared.live import awaited
from dashboard.shared.messages import errors_shown
from study.bundle import Manifest
from study.network.placement import caveats
from study.plan.preregistration import Plan

ANSWER = "Answer"
SECTIONS: dict[str, Callable[[Analysed, Manifest | None], None]] = {
    ANSWER: lambda found, _: findings.tests(found),
    "Models": lambda found, _: findings.models(found),
    "Contrasts": lambda found, _: findings.contrasts(found),
    "Checks": lambda found, _: checks.show(found),
    "Exploratory": exploratory.show,
    "Report": reporting.show,
}


def page() -> None:
    """The whole page."""
    st.title("Results", anchor=False)
    st.caption(
        "What was collected, whether explanations changed how well participants predict the AI, and how certain it is."
    )
    with errors_shown():
        chosen = responses.choose("results")
        if chosen is not None:
            _shown(chosen)


def _shown(chosen: Chosen) -> None:
    for caveat in caveats(chosen.bundle.manifest if chosen.bundle else None):
        st.warning(caveat)
    quality.show(chosen.data)
    sample = awaited(work.sampled(chosen.data, _plan(chosen), chosen.looks).ask())
    if sample is None:
        return
    quality.exclusions(sample)
    section = st.segmented_control(
        "Section",
        SECTIONS,
        default=ANSWER,
        required=True,
        key="section",
        bind="query-params",
        label_visibility="collapsed",
    )
    models = st.container()
    if section == ANSWER:
        findings.figure(sample)  # before the models are begun: it needs none
    with models, errors_shown():
        found = awaited(work.analysed(sample).ask())
        if found is not None:
            SECTIONS[section](found, chosen.bundle.manifest if chosen.bundle else None)


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
