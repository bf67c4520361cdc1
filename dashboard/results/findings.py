"""The findings: effects in percentage points, Figure 1, the nested models, Table 1, the contrasts."""

from __future__ import annotations

import re

import pandas as pd
import streamlit as st

from dashboard.results import jobs as work
from dashboard.results.jobs import AnalysisResult, Sample
from dashboard.results.wording import IN_WORDS
from dashboard.shared import files, live, numbers
from dashboard.shared.messages import escape_markdown
from study.analysis import figures, headline, nested, random_effects, report
from study.analysis.sentences import words

NARROW = {"points_low": "from"}
"""A heading of the widest table, which fits a screen of 1,280 pixels; the interval before says its coverage."""


def show_figure(sample: Sample) -> None:
    """Show Figure 1."""
    numbers.heading("Figure 1", sample.label)
    numbers.chart(
        figures.draw(sample.numbers, simulated=sample.data.has_simulated), sample.numbers, "figure1", IN_WORDS
    )
    st.caption("Mean accuracy with 95% bootstrap intervals over participants. The dotted line is chance.")


def show_tests(result: AnalysisResult) -> None:
    """Show effects with intervals, the tests in plain language, and warnings about the models."""
    numbers.heading("Do explanations help participants predict the AI?", result.label)
    if not result.contrasts.empty:
        said, drawn = st.columns(2, gap="large")
        said.markdown(
            "\n".join(f"- {_keep_whole(line)}" for line in headline.sentences(result.contrasts, result.level))
        )
        with drawn:
            numbers.chart(
                headline.forest(result.contrasts, result.level, simulated=result.data.has_simulated),
                result.contrasts,
                "contrasts",
                IN_WORDS,
                headings=NARROW,
                coverage=headline.coverage_text(result.level),
            )
        st.caption(
            f"Differences in accuracy with {headline.coverage_text(result.level)} intervals, uncorrected; p values "
            "in the sentences are corrected for the number of contrasts (Holm). Estimated by the "
            f"{list(result.analysis.models)[-1]} model and averaged over participants and categories, so accuracies "
            "can differ a little from the observed ones in Figure 1."
        )
    for test in result.analysis.tests:
        st.markdown(f"**{_keep_whole(report.describe_test(test, result.level))}**")
    if (omission := random_effects.omission(result.data.frame, result.analysis.random)) is not None:
        st.warning(f"{omission} See the section Checks.")
    for line in result.analysis.reduction:
        st.warning(line)
    for name, model in result.analysis.models.items():
        for message in model.messages:
            st.warning(f"Model {name}: {message}")


def _keep_whole(sentence: str) -> str:
    """Escape a sentence, and let no line end within "p = .021"."""
    return re.sub(r"\bp (=|\\[<>]) ", "p\u00a0\\1\u00a0", escape_markdown(sentence))


def show_models(result: AnalysisResult) -> None:
    """Show the nested models, Table 1, and how much participants and categories differ."""
    numbers.heading("Nested models", result.label)
    numbers.table(nested.comparison(result.analysis), "models", headings={"df": "Parameters"})
    st.caption(
        f"Logistic mixed models with the random effects {result.analysis.random}. χ², its degrees of freedom and p "
        "test each model against the one before."
    )
    name = list(result.analysis.models)[-1]
    numbers.heading(f"Table 1: the {name} model", result.label)
    numbers.table(report.table(result.model), "table1")
    st.caption(
        "Log-odds with 95% Wald intervals. Reference: adversarial incorrect, no saliency map, no examples. "
        "\\* p < .05, \\*\\* p < .01, \\*\\*\\* p < .001."
    )
    files.offer_download("table1.tex", lambda: report.latex(result.model), "table1.tex", "text/plain")
    numbers.heading("Random effects: how much participants and categories differ", result.label)
    rows = [(effect.group, words(effect.term), effect.sd, effect.se, effect.variance) for effect in result.model.random]
    numbers.table(pd.DataFrame(rows, columns=["between", "term", "sd", "se", "variance"]), "variances")
    numbers.heading("Profile intervals", result.label)
    st.caption(
        "95% intervals of all values that a likelihood-ratio test does not reject, with that test of each coefficient "
        "against 0. They need not be symmetric; where they differ from the Wald intervals, prefer them."
    )
    live.draw_when_ready(work.make_profile_task(result), _profiles, "profiles")


def _profiles(made: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    coefficients, deviations = made
    numbers.table(coefficients, "profiles")
    numbers.table(deviations.drop(columns="method"), "variance_profiles")


def show_contrasts(result: AnalysisResult) -> None:
    """Show the Holm-corrected contrasts, and the effect of explanations on the probability."""
    numbers.heading("Contrasts", result.label)
    if result.contrasts.empty:
        st.info("The plan names no contrasts.")
    else:
        coverage = headline.coverage_text(result.level)
        numbers.table(result.contrasts, "contrasts", IN_WORDS, headings=NARROW, coverage=coverage)
        st.caption(
            f"Estimates in log-odds and differences of accuracy in percentage points, each with its {coverage} "
            "interval, uncorrected; p (Holm) is corrected for the number of contrasts. Accuracy 1 and 2: of the "
            "condition that the contrast names first and second."
        )
    numbers.heading("Average effects on the probability", "exploratory")
    live.draw_when_ready(
        work.make_effects_task(result), lambda table: numbers.table(table, "effects", IN_WORDS), "effects"
    )
    st.caption(
        "Change in the probability of a correct prediction, averaged over participants and categories; 95% intervals."
    )
