"""Results: choose responses, see the findings, and below them the data and the exclusions behind them."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard.results import checks, exploratory, findings, quality, reporting, responses, robustness
from dashboard.results import jobs as work
from dashboard.results.jobs import AnalysisResult, Sample
from dashboard.results.responses import ChosenResponses
from dashboard.shared import demo, links
from dashboard.shared.live import await_result
from dashboard.shared.messages import show_errors
from dashboard.shared.sections import choose_section
from study.bundle import Manifest
from study.network.placement import caveats
from study.plan.preregistration import AnalysisPlan

MAIN_RESULT = "Main result"
SECTIONS: dict[str, Callable[[AnalysisResult, Manifest | None], None]] = {
    MAIN_RESULT: lambda result, _: findings.show_tests(result),
    "Models": lambda result, _: findings.show_models(result),
    "Contrasts": lambda result, _: findings.show_contrasts(result),
    "Checks": lambda result, _: checks.show(result),
    "Robustness": lambda result, _: robustness.show(result),
    "Exploratory": exploratory.show,
    "Report": reporting.show,
}


def page() -> None:
    """Draw the page."""
    st.title("Results", anchor=False)
    with show_errors():
        demo.show_progress()
        chosen = responses.choose("results")
        if chosen is not None:
            _show_results(chosen)


def _show_results(chosen: ChosenResponses) -> None:
    """Draw what speaks against the findings, the findings, and below them the data that they rest on."""
    manifest = chosen.bundle.manifest if chosen.bundle else None
    status = st.container(horizontal=True, vertical_alignment="center")
    for caveat in (*caveats(manifest), *quality.list_messages(chosen.data)):
        st.warning(caveat)
    with status:
        plan = _plan(chosen)
        quality.show_modes(chosen.data)
    above = st.container()
    st.header("Data and exclusions", anchor=False)
    quality.show(chosen.data)
    sample = None
    with above, show_errors():
        sample = await_result(work.make_sample_task(chosen.data, plan, chosen.interim_analyses).ask())
    if sample is None:
        return
    quality.show_exclusions(sample)
    with status:
        quality.show_incomplete(sample)
    with above:
        _show_findings(sample, manifest)


def _show_findings(sample: Sample, manifest: Manifest | None) -> None:
    """Draw the chosen section; what needs no model is drawn before the models are fitted."""
    too_few = quality.show_too_few(sample, manifest)
    section = choose_section("Section", SECTIONS, "section")
    links.show()
    models = st.container()
    if section == MAIN_RESULT:
        findings.show_figure(sample)
    with models, show_errors():
        awaited = st.empty()
        awaited.caption("Figure 1 and the counts are below. Still computed: the mixed models and the verdict.")
        result = await_result(work.make_analysis_task(sample).ask())
        if result is None:
            return
        awaited.empty()
        if too_few and section == MAIN_RESULT:
            findings.show_folded_messages(result)
        else:
            SECTIONS[section](result, manifest)


def _plan(chosen: ChosenResponses) -> AnalysisPlan | None:
    """Return the frozen plan, unless the analyst turns it off."""
    plan = chosen.plan
    if plan is None:
        return None
    kept = st.toggle(
        "As planned",
        value=True,
        key="planned",
        bind="query-params",
        help="Runs the plan as it was frozen with the study. Without it no participant is excluded, the paper's models "
        "are fitted, and everything is exploratory.",
    )
    return plan if kept else None
