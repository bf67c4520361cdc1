"""The findings: effects in percentage points, Figure 1, the nested models, Table 1, the contrasts."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.results import jobs as work
from dashboard.results import means
from dashboard.results.jobs import AnalysisResult, Sample
from dashboard.shared import files, live, numbers
from dashboard.shared.jobs import Job
from dashboard.shared.messages import escape_markdown
from study.analysis.exploratory import slopes
from study.analysis.models import random_effects
from study.analysis.models.records import MixedModel
from study.analysis.models.sentences import coverage_text, keep_whole, words
from study.analysis.planned import nested
from study.analysis.report import captions, figures, headline, model_table, verdicts
from study.analysis.words.wording import IN_WORDS
from study.conditions import format_condition

EFFECTS = {"variable": "Explanation", "effect": "% points"}
EFFECT_ORDER = ("variable", "trial_type", "effect", "se", "low", "high")
"""Without the value, which is always 1: shown."""


def show_figure(sample: Sample) -> None:
    """Show Figure 1."""
    numbers.heading(figures.TITLE, sample.label)
    numbers.chart(
        figures.draw(sample.numbers, sample.data.task.outcome, simulated=sample.data.has_simulated),
        sample.numbers,
        "figure1",
        IN_WORDS,
    )
    st.caption(captions.FIGURE_1)


def show_tests(result: AnalysisResult) -> None:
    """Show the tests in plain language, effects with intervals, and the messages about the models."""
    numbers.heading(result.data.task.aim, result.label)
    _show_verdicts(result)
    if not result.contrasts.empty:
        drawn, said = st.columns(2, gap="large")  # on a phone the figure comes before the sentences
        said.markdown("\n".join(f"- {_write(line)}" for line in headline.sentences(result.contrasts, result.level)))
        with drawn:
            numbers.chart(
                headline.forest(result.contrasts, result.level, simulated=result.data.has_simulated),
                result.contrasts,
                "contrasts",
                IN_WORDS,
                headings=captions.CONTRASTS,
                coverage=coverage_text(result.level),
                order=captions.ACCURACY_COLUMNS,
            )
        st.caption(
            f"Differences in accuracy with {coverage_text(result.level)} intervals, uncorrected; p values "
            "in the sentences are corrected for the number of contrasts (Holm). "
            f"{captions.explain_estimates(list(result.analysis.models)[-1])}"
        )
    _warn([result.untestable] if result.untestable else [], *_list_messages(result))


def _show_verdicts(result: AnalysisResult) -> None:
    """Show what each test says and, as soon as they are fitted, whether it says the same as in the paper."""
    if slopes.can_compare(result.data, result.analysis):
        live.draw_live(
            lambda asking: _ask_for_comparison(asking, result), lambda job: _draw_compared(result, job), "verdicts"
        )
    else:
        _draw_verdicts(result)
    omission = random_effects.omission(result.data.frame, result.analysis.requested_random)
    if omission is not None:
        st.caption(escape_markdown(omission))
    st.button("See the section Checks", key="see_checks", on_click=_open_checks)


def _open_checks() -> None:
    st.session_state["section"] = "Checks"


def _ask_for_comparison(asking: live.JobCollector, result: AnalysisResult) -> Job | None:
    asking.action = "Compare random effects"
    return asking(work.make_measure_task(result, "slopes"))


def _draw_compared(result: AnalysisResult, job: Job | None) -> None:
    if job is not None and job.state == "done":
        _draw_verdicts(result, job.result.table)
    else:
        _draw_verdicts(result)
        without = slopes.are_left_out(result.data, result.analysis)
        name = "With random slopes" if without else "With random intercepts only, as in the paper"
        st.caption(f"{name}: {escape_markdown(live.describe_state(job))}")


def _draw_verdicts(result: AnalysisResult, compared: pd.DataFrame | None = None) -> None:
    """Draw what each test says, and beneath it the same test as in the paper, from the table of `slopes`."""
    for verdict in verdicts.list_verdicts(result.analysis, result.data, compared, result.level):
        lines = [f"**{_write(verdict.main)}**"] if verdict.main else []
        st.markdown("  \n".join([*lines, *map(_write, filter(None, [verdict.beneath]))]))
    if compared is not None and (counted := slopes.describe_contrasts(compared, result.level)):
        st.markdown(_write(counted))


def show_folded_messages(result: AnalysisResult) -> None:
    """Fold every message about the models into one expander: what the models say is not shown here."""
    omission = random_effects.omission(result.data.frame, result.analysis.requested_random)
    lines = [*filter(None, [omission]), *(line for box in _list_messages(result) for line in box)]
    with st.expander(f"Messages of the models ({len(lines)})"):
        st.markdown("\n".join(f"- {escape_markdown(line)}" for line in lines))
        st.caption("The sections Models and Contrasts show what the models estimate from so few participants.")


def _list_messages(result: AnalysisResult) -> list[list[str]]:
    """List the messages about the models: a list for each box that shows them."""
    boxes = [[line] for line in result.analysis.reduction]
    return boxes + [list_model_messages(name, model) for name, model in result.analysis.models.items()]


def _warn(*boxes: list[str]) -> None:
    """Warn in one box for each list that has messages."""
    for lines in filter(None, boxes):
        st.warning("\n\n".join(lines))


def list_model_messages(name: str, model: MixedModel) -> list[str]:
    """List a model's messages, each with its name."""
    return [f"Model {name}: {message}" for message in model.messages]


def _write(sentence: str) -> str:
    """Write a sentence in Markdown."""
    return escape_markdown(keep_whole(sentence))


def show_models(result: AnalysisResult) -> None:
    """Show the nested models, Table 1, and how much participants and categories differ."""
    numbers.heading("Nested models", result.label)
    _warn(*(list_model_messages(name, model) for name, model in result.analysis.models.items()))
    numbers.table(nested.comparison(result.analysis), "models", headings=captions.MODELS)
    st.caption(captions.explain_models(result.analysis.random))
    name = list(result.analysis.models)[-1]
    numbers.heading(f"Table 1: the {name} model", result.label)
    numbers.table(model_table.table(result.model), "table1")
    st.caption(escape_markdown(captions.explain_table_1(result.model)))
    files.offer_download("table1.tex", lambda: model_table.latex(result.model), "table1.tex", "text/plain")
    numbers.heading("Random effects: how much participants, categories and images differ", result.label)
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


def _write_points(share: float) -> str:
    """Write a difference of probabilities in percentage points; the file has the probabilities."""
    return f"{100 * share:.1f}".replace("-", "−")


EFFECT_FORMS: numbers.Words = {
    "variable": format_condition,
    **dict.fromkeys(("effect", "se", "low", "high"), _write_points),
}


def _show_effects(effects: pd.DataFrame) -> None:
    """Show the effects that the conditions determine, and name the explanations without one."""
    known = effects["effect"].notna()
    if known.any():
        words: numbers.Words = {**IN_WORDS, **EFFECT_FORMS}
        numbers.table(effects[known], "effects", words, headings=EFFECTS, order=EFFECT_ORDER)
    for name in effects.loc[~known, "variable"].unique():
        st.info(
            f"{format_condition(name)}: no average effect for every trial type, because nobody was in some of the "
            "conditions that it compares."
        )


def show_contrasts(result: AnalysisResult) -> None:
    """Show the Holm-corrected contrasts, and the effect of explanations on the probability."""
    numbers.heading("Contrasts", result.label)
    if result.contrasts.empty:
        st.info("The plan names no contrast between conditions that have responses.")
    else:
        _warn(list_model_messages(list(result.analysis.models)[-1], result.model))
        coverage = coverage_text(result.level)
        numbers.table(result.contrasts, "contrasts", IN_WORDS, coverage=coverage, order=captions.ACCURACY_COLUMNS)
        st.caption(captions.explain_contrasts(result.level))
        if result.untestable:
            st.caption(result.untestable)
        with st.expander("In log-odds"):
            log_odds = result.contrasts[list(captions.LOG_ODDS_COLUMNS)]
            numbers.table(log_odds, "contrasts_log_odds", IN_WORDS, headings=captions.CONTRASTS, coverage=coverage)
    numbers.heading("Average effects on accuracy", "exploratory")
    live.draw_when_ready(work.make_effects_task(result), _show_effects, "effects")
    st.caption(
        "Change in the probability of a correct response, in percentage points, when the explanation is shown, "
        "against when it is not; averaged over the random effects, and over whether the other explanation is "
        "shown, as often as in these responses; 95% intervals."
    )
    means.show(result)
