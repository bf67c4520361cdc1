"""Estimated means of the factors of choice, with contrasts corrected as chosen, of the largest model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import streamlit as st

from dashboard.results import jobs as work
from dashboard.results.jobs import AnalysisResult
from dashboard.shared import live, numbers
from dashboard.shared.messages import escape_markdown
from study.analysis.means.adjustment import Adjustment
from study.analysis.means.means import EstimatedMeans
from study.analysis.models import formula as formulas
from study.analysis.models.marginal import Scale
from study.analysis.models.sentences import coverage_text
from study.analysis.report.means import list_tables
from study.analysis.words.headings import format_heading
from study.analysis.words.wording import IN_WORDS

FACTORS = ("trial_type", "saliency", "examples")
SCALES: Mapping[bool, Mapping[str, Scale]] = {
    True: {
        "Accuracy, averaged over the random effects": "population",
        "Accuracy at random effects of 0": "response",
        "Log-odds": "link",
    },
    False: {
        "Mean level, averaged over the random effects": "population",
        "Mean level at random effects of 0": "response",
        "Log-odds of a higher level": "link",
    },
}
"""By whether responses are right or wrong."""
SHOWN: numbers.Words = dict.fromkeys(("saliency", "examples"), lambda shown: "yes" if shown else "no")
"""Whether an explanation was shown."""
CORRECTIONS: Mapping[str, Adjustment] = {
    "Holm": "holm",
    "Tukey": "tukey",
    "Max-t (simultaneous)": "mvt",
    "None": "none",
}


def show(result: AnalysisResult) -> None:
    """Show the means of the chosen factors and all pairs of them."""
    numbers.heading("Estimated means", "exploratory")
    known = [name for name in FACTORS if name in formulas.list_names(result.model.formula)]
    factors, within, scale, correction = st.columns(4)
    explanations = [name for name in known if name != "trial_type"]
    chosen = factors.multiselect("Means of", known, explanations, format_func=format_heading, key="means")
    others = [None, *(name for name in known if name not in chosen)]
    by = within.selectbox("Within each", others, 0, format_func=_write_within, key="means_within")
    scales = SCALES[result.data.task.is_scored]
    unit = scale.selectbox("Scale", scales, key="means_scale")
    how = correction.selectbox("Correction of the pairs", CORRECTIONS, key="means_correction")
    if not chosen:
        st.info("Choose at least one factor.")
        return
    asked = " * ".join(chosen) + (f" | {by}" if by else "")
    task = work.make_means_task(result, asked, scales[unit], CORRECTIONS[how])
    live.draw_when_ready(task, partial(_draw, is_scored=result.data.task.is_scored), "means")


def show_planned(result: AnalysisResult) -> None:
    """Show the means that the plan asks for."""
    planned = {} if result.plan is None else result.plan.means
    for number, (asked, made) in enumerate(planned.items(), start=1):
        numbers.heading(f"Estimated means of {escape_markdown(asked)}", result.label)
        if isinstance(made, str):
            st.info(escape_markdown(made))
        else:
            _draw(made, f"means_{number}", coverage_text(result.level), is_scored=result.data.task.is_scored)


def _write_within(name: str | None) -> str:
    return format_heading(name) if name else "–"


def _draw(made: EstimatedMeans, name: str = "means", coverage: str = "95%", *, is_scored: bool = True) -> None:
    are_shares = is_scored and made.scale != "link"
    shares = frozenset({"estimate", "se", "low", "high"} if are_shares else ())
    means, contrasts = list_tables(made)
    numbers.table(means, name, {**IN_WORDS, **SHOWN}, shares=shares, coverage=coverage)
    if len(contrasts):
        words = {"trial_type": IN_WORDS["trial_type"]}
        numbers.table(contrasts, f"{name}_contrasts", words, shares=shares, coverage=coverage)
    st.caption(escape_markdown(" ".join(made.notes)))
