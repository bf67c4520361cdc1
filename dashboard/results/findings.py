"""The findings: effects in percentage points, Figure 1, the nested models, Table 1, the contrasts."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from core.names import upper_first
from dashboard.results import evidence, means
from dashboard.results import jobs as work
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
from study.analysis.report.opening import write_opening
from study.analysis.responses.notices import MODES
from study.analysis.words.wording import IN_WORDS
from study.conditions import format_condition

EFFECTS = {
    True: {"variable": "Explanation", "effect": "% points"},
    False: {"variable": "Explanation", "effect": "Levels"},
}
"""Headings, by whether responses are right or wrong."""
MARK = f"{MODES['sim'].partition(':')[0]}: "
"""What a verdict of simulated participants begins with where no badge above it says so."""
EFFECT_ORDER = ("variable", "trial_type", "effect", "se", "low", "high")
"""Without the value, which is always 1: shown."""


def show_figure(sample: Sample) -> None:
    """Show Figure 1."""
    task = sample.data.task
    numbers.heading(figures.TITLES[task.is_scored], sample.label)
    numbers.chart(
        figures.draw(sample.numbers, task, simulated=sample.data.has_simulated),
        sample.numbers,
        "figure1",
        IN_WORDS,
    )
    st.caption(captions.explain_figure_1(sample.data.every, task))


def show_tests(result: AnalysisResult) -> None:
    """Show the verdict next to the differences that it is about, then what supports it and the models' messages."""
    numbers.heading(result.data.task.aim, result.label)
    if slopes.can_compare(result.data, result.analysis):
        live.draw_live(
            lambda asking: _ask_for_comparison(asking, result), lambda job: _draw_compared(result, job), "verdicts"
        )
    else:
        _draw_result(result)
    omission = random_effects.omission(result.data.frame, result.analysis.requested_random)
    _warn([result.untestable] if result.untestable else [], [omission] if omission else [], *_list_messages(result))


def _ask_for_comparison(asking: live.JobCollector, result: AnalysisResult) -> Job | None:
    asking.action = "Compare random effects"
    return asking(work.make_measure_task(result, "slopes"))


def _draw_compared(result: AnalysisResult, job: Job | None) -> None:
    if job is not None and job.state == "done":
        _draw_result(result, job.result.table)
        return
    without = slopes.are_left_out(result.data, result.analysis)
    name = "The verdict, with random slopes" if without else "With random intercepts only, as in the paper"
    _draw_result(result, awaited=f"{name}: {live.describe_state(job)}")


def _draw_result(result: AnalysisResult, compared: pd.DataFrame | None = None, awaited: str = "") -> None:
    """Draw the verdict and its tests next to the forest plot of the same model.

    ``compared`` is the table of `slopes`, ``awaited`` what is still computed.
    """
    opening = write_opening(
        result.analysis, result.data, result.contrasts, compared, result.level, planned=result.plan is not None
    )
    said, drawn = st.columns(2, gap="large")  # on a phone the verdict comes before the figure
    with said:
        if opening is not None:
            with st.container(key="verdict"):
                st.markdown(_write(upper_first(opening.verdict.removeprefix(MARK))))
            if opening.size:
                st.markdown(_write(opening.size))
        with st.container(key="verdict_tests"):
            _draw_tests(result, compared)
        if awaited:
            st.caption(escape_markdown(awaited))
        st.button("See the section Checks", key="see_checks", on_click=_open_checks)
    if opening is not None and not opening.contrasts.empty:
        with drawn:
            _draw_differences(result, opening.contrasts)


def _draw_tests(result: AnalysisResult, compared: pd.DataFrame | None) -> None:
    """Draw what each test says, next to the same test as in the paper, from the table of `slopes`."""
    said = verdicts.tabulate_verdicts(result.analysis, result.data, compared, result.level)
    rows = (said.cells.columns, *said.cells.itertuples(index=False))
    heading, *lines = (f"| {' | '.join(map(_write, cells))} |" for cells in rows)
    st.markdown("\n".join([heading, "|---" * said.cells.shape[1] + "|", *lines]))
    for note in said.notes:
        st.caption(_write(note))


def _draw_differences(result: AnalysisResult, contrasts: pd.DataFrame) -> None:
    numbers.chart(
        headline.forest(contrasts, result.level),
        contrasts,
        "contrasts" if contrasts is result.contrasts else "slopes_contrasts",
        IN_WORDS,
        headings=captions.CONTRASTS,
        coverage=coverage_text(result.level),
        order=captions.choose_columns(contrasts)[0],
        has_download=not result.data.has_simulated,
    )
    with st.expander("In sentences"):
        st.markdown("\n".join(f"- {_write(line)}" for line in headline.sentences(contrasts, result.level)))
    is_scored = result.data.task.is_scored
    st.caption(
        f"Differences in {'accuracy' if is_scored else 'the mean level'} with uncorrected "
        f"{coverage_text(result.level)} intervals. "
        f"{captions.explain_estimates(list(result.analysis.models)[-1], is_scored=is_scored)}"
    )


def _open_checks() -> None:
    st.session_state["section"] = "Checks"


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
    st.caption(captions.explain_models(result.analysis.random, is_scored=result.data.task.is_scored))
    name = list(result.analysis.models)[-1]
    numbers.heading(f"Table 1: the {name} model", result.label)
    numbers.table(model_table.table(result.model), "table1")
    st.caption(escape_markdown(captions.explain_table_1(result.model)))
    files.offer_download("table1.tex", lambda: model_table.latex(result.model), "table1.tex", "text/plain")
    numbers.heading("Random effects: how much participants, categories and images differ", result.label)
    rows = [(effect.group, words(effect.term), effect.sd, effect.se, effect.variance) for effect in result.model.random]
    numbers.table(pd.DataFrame(rows, columns=["between", "term", "sd", "se", "variance"]), "variances")
    st.caption(escape_markdown(captions.explain_random_effects(result.data.frame, result.model)))
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


EFFECT_FORMS: numbers.Words = dict.fromkeys(("effect", "se", "low", "high"), _write_points)


def _show_effects(effects: pd.DataFrame, *, is_scored: bool) -> None:
    """Show the effects that the conditions determine, and name the explanations without one."""
    known = effects["effect"].notna()
    if known.any():
        words: numbers.Words = {**IN_WORDS, "variable": format_condition, **(EFFECT_FORMS if is_scored else {})}
        numbers.table(effects[known], "effects", words, headings=EFFECTS[is_scored], order=EFFECT_ORDER)
    for name in effects.loc[~known, "variable"].unique():
        st.info(
            f"{format_condition(name)}: no average effect for every trial type, because nobody was in some of the "
            "conditions that it compares."
        )


def show_contrasts(result: AnalysisResult) -> None:
    """Show the Holm-corrected contrasts, and the effects of explanations on accuracy or the mean level."""
    numbers.heading("Contrasts", result.label)
    if result.contrasts.empty:
        st.info("The plan names no contrast between conditions that have responses.")
    else:
        _warn(list_model_messages(list(result.analysis.models)[-1], result.model))
        _show_contrast_tables(result)
        evidence.show(result)
    means.show_planned(result)
    is_scored = result.data.task.is_scored
    numbers.heading(f"Average effects on {'accuracy' if is_scored else 'the mean level'}", "exploratory")
    live.draw_when_ready(work.make_effects_task(result), partial(_show_effects, is_scored=is_scored), "effects")
    changed = "probability of a correct response, in percentage points," if is_scored else "mean level"
    st.caption(
        f"Change in the {changed} when the explanation is shown, against when it is not; averaged over the random "
        "effects, and over whether the other explanation is shown, as often as in these responses; 95% intervals."
    )
    means.show(result)


def _show_contrast_tables(result: AnalysisResult) -> None:
    """Show the contrasts as accuracies or mean levels, and folded as log-odds or odds ratios."""
    coverage, is_scored = coverage_text(result.level), result.data.task.is_scored
    first, second = captions.choose_columns(result.contrasts)
    numbers.table(result.contrasts, "contrasts", IN_WORDS, coverage=coverage, order=first)
    st.caption(captions.explain_contrasts(result.level, is_scored=is_scored))
    if result.untestable:
        st.caption(result.untestable)
    with st.expander("In log-odds" if is_scored else "As odds ratios of a higher level"):
        log_odds = result.contrasts[list(second)]
        numbers.table(log_odds, "contrasts_log_odds", IN_WORDS, headings=captions.CONTRASTS, coverage=coverage)
