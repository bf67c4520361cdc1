"""Choose the assumptions of a power curve, and show it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from core.errors import ForetellError
from dashboard.explore.parameters import MOST_SEED
from dashboard.power import inputs, tables
from dashboard.power.jobs import PowerAnalysis
from dashboard.power.refusals import describe_other_than_two
from dashboard.results import responses
from dashboard.shared import links, live, numbers
from dashboard.shared.jobs import pool
from dashboard.shared.keys import STARTED_KEY
from dashboard.shared.messages import escape_markdown
from dashboard.shared.small_tables import draw_table
from dashboard.studies import simulation
from dashboard.studies.workspace_studies import Study
from study.analysis.means.equivalence import read_points, write_bounds
from study.analysis.power import simulation as power
from study.analysis.responses.notices import MODES
from study.plan.config import StudyConfig
from study.plan.equivalence import Bounds

PAPER, SIMULATED = "Folke et al. (2021), Table 1", "Simulated participants"
ADDRESS = "https://arxiv.org/abs/2106.09106"
MULTIPLIERS = "Effect-size multipliers"
SIZES, EFFECTS = "10, 20, 40, 60", "1, 0.5"
MOST_STUDIES = 5000
MULTIPLE = {"effect": tables.MULTIPLIER}
ORDER = ("per_condition", "effect", "power", "low", "high", "test", "studies", "failed", "participants", "cost")
"""Of the columns of the curve: on a narrow page the first ones are seen."""
TESTS: numbers.Words = {"test": power.name_test, "effect": tables.write_multiple}


def choose_analysis(study: Study) -> PowerAnalysis | None:
    """Choose the power analysis with the widgets; None until a pilot is chosen.

    Raises
    ------
    ForetellError
        Sizes or effects that are no numbers, a pilot not fit for analysis, or people without a built study.
    """
    assert study.settings is not None
    sources = (SIMULATED,) if describe_other_than_two(study.settings.task) else (PAPER, SIMULATED)
    pilot = responses.choose("pilot", sources, "Assumed effects from")
    source = st.session_state["pilot_source"]
    mixture = _choose_mixture(study) if source == SIMULATED else None
    for message in pilot.data.messages if pilot else ():
        st.warning(escape_markdown(message))
    assumed = st.container()
    question = replace(
        _sizes(study.settings, scaled=mixture is None), mixture=mixture, pilot=pilot.data if pilot else None
    )
    if pilot is None and source not in (PAPER, SIMULATED):
        return None
    with assumed:
        _show_assumptions(question)
    return question


def _choose_mixture(study: Study) -> dict[str, float]:
    """Choose the mixture of simulated participants for a study that is built."""
    if study.bundle is None:
        raise ForetellError(
            "Simulated participants respond to frozen trials. Build the study first, on the Studies page."
        )
    st.warning(f"{MODES['sim']}. Power holds only if real participants respond as this mixture does.")
    return simulation.choose_mixture("power")


def _show_assumptions(question: PowerAnalysis) -> None:
    """Show the assumed accuracy of each condition and trial type, and where it is from."""
    means = _tabulate_means(question.means_key, question)
    assumed, difference = tables.describe_assumptions(question.outcome)
    st.markdown(f"**{assumed}**")
    draw_table(tables.tabulate_assumptions(means), "assumptions")
    compared = means[question.outcome.difference].notna().any()
    st.caption(f"{_describe_source(question)}{f' In brackets: {difference}.' if compared else ''}")


@st.cache_data(max_entries=16, show_spinner="Computing what is assumed …")
def _tabulate_means(key: str, _question: PowerAnalysis) -> pd.DataFrame:  # noqa: ARG001
    return _question.tabulate_means()


def _describe_source(question: PowerAnalysis) -> str:
    if question.mixture is not None:
        return "What this mixture implies for the trials of this study, computed exactly."
    averaged = "averaged over participants and categories"
    if question.pilot is not None:
        return (
            f"Estimated by the interaction model of the pilot, {averaged}. The intervals of power do not include the "
            "uncertainty of these estimates."
        )
    return f"From the coefficients of [Folke et al. (2021)]({ADDRESS}), Table 1, {averaged}."


def _sizes(study: StudyConfig, *, scaled: bool) -> PowerAnalysis:
    """Choose sizes, number of studies and effect multipliers, which simulated participants do not have."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        sizes = links.text_input("Participants per condition", SIZES, key="sizes", width=200)
        effects = _ask_for_effects() if scaled else ""
        slopes = _slopes() if scaled else {}
        studies = st.number_input(
            "Simulated studies", 10, MOST_STUDIES, 100, 10, key="studies", bind="query-params", width=170
        )
        seed = st.number_input("Random seed", 0, MOST_SEED, 0, 1, key="seed", bind="query-params", width=120)
    contrasts = st.toggle(
        "Planned contrasts",
        key="contrasts",
        bind="query-params",
        help="Tests each contrast of the plan in every simulated study, too, and its equivalence where the plan has "
        "bounds. This takes about twice as long.",
    )
    bounds = _choose_bounds(study) if contrasts and study.task.is_scored else None
    people = links.accept("sizes", sizes, SIZES, lambda text: inputs.parse_sizes(text, "Participants per condition"))
    multiples = (
        links.accept("effects", effects, EFFECTS, lambda text: inputs.parse_multiples(text, MULTIPLIERS))
        if scaled
        else (1.0,)
    )
    options: dict[str, Any] = {"slope_sds": slopes, "with_contrasts": contrasts, "other_bounds": bounds}
    return PowerAnalysis(study, people, int(studies), multiples, seed=int(seed), **options).with_planned_size()


def _ask_for_effects() -> str:
    """Ask by what the assumed effects are multiplied."""
    return links.text_input(
        MULTIPLIERS,
        EFFECTS,
        key="effects",
        width=190,
        help="1: the assumed effects of explanations; 0.5: half of them. Put commas between several.",
    )


def _choose_bounds(study: StudyConfig) -> Bounds | None:
    """Choose equivalence bounds to try instead of the plan's; None where nothing is given."""
    planned = study.plan.equivalence
    given = links.text_input(
        "Equivalence bounds (percentage points)",
        "",
        key="equivalence",
        placeholder="5 or -5, 10" if planned is None else f"{write_bounds(planned)}, as planned",
        width=280,
        help="The largest difference that would not matter. Power is then also the share of simulated studies that "
        "show a contrast to lie within. In the study file it is `[analysis] equivalence = 5`.",
    )
    return links.accept("equivalence", given, "", read_points)


def _slopes() -> dict[str, float]:
    """Choose the standard deviations of the assumed random slopes."""
    return {
        group: st.number_input(
            f"Slope SD by {group}",
            0.0,
            inputs.LARGEST_SLOPE,
            0.0,
            0.1,
            key=f"slope_{group}",
            bind="query-params",
            width=210,
            help=f"By how much {said}, in log-odds; 0: not at all.",
        )
        for group, said in inputs.SLOPES.items()
    }


def show(question: PowerAnalysis) -> None:
    """Draw a button with the estimated time, then progress, then the curve."""
    with st.container(horizontal=True):
        pay = st.number_input("Pay per participant", 0.0, 1e4, 3.0, 0.5, key="pay", bind="query-params", width=220)
        currency = st.text_input("Currency", "EUR", max_chars=8, key="currency", bind="query-params", width=120)
    asked = tables.describe_sizes(question.sizes, question.effects, question.planned_size)
    st.caption(f"{asked} A test is significant if it has {question.criterion}. The target power is 80%.")
    for note in question.notes:
        st.caption(escape_markdown(note))
    task = question.task()
    if pool().find(task.key) is None and task.key not in st.session_state.get(STARTED_KEY, ()):
        about = live.format_duration(task.seconds or 0.0)
        st.button(f"Simulate ({about})", type="primary", key="simulate", on_click=live.begin, args=([task.key],))
        return
    live.draw_when_ready(task, lambda table: _curve(question, table, pay, currency), "power")


def _curve(question: PowerAnalysis, whole: pd.DataFrame, pay: float, currency: str) -> None:
    table, conditions = whole[~power.is_contrast(whole)], question.groups
    if question.planned_size is not None:
        _show_planned(
            table, question.planned_size, tables.describe_cost(question.planned_size, conditions, pay, currency)
        )
    st.markdown("**Participants needed for a power of 80%**")
    draw_table(tables.tabulate_sample_sizes(table, conditions, pay, currency, question.study.task.act), "sizes")
    st.caption(
        "The smallest of these sizes at which the whole 95% interval of power is above 80%. ≤: already the smallest "
        "size that was tried; try smaller ones. A dash: none of them; try larger sizes or more simulated studies."
    )
    _show_curve(question, power.with_cost(whole, conditions, pay), currency)
    if question.with_contrasts:
        _show_contrasts(whole[power.is_contrast(whole)], question)
    if table["effect"].nunique() > 1:
        _show_smallest_effects(table)
    if int(whole["failed"].sum()):
        st.warning(f"{int(whole['failed'].sum()):,} tests of simulated studies could not be fitted and are left out.")


def _show_smallest_effects(table: pd.DataFrame) -> None:
    """Show the smallest effect that each sample size can detect."""
    st.markdown(
        "**Smallest of these multipliers at which the whole 95% interval of power is above 80%**, by participants per "
        "condition"
    )
    draw_table(tables.tabulate_smallest_effects(table), "smallest")
    st.caption("≤: already the smallest that was tried; try smaller ones. A dash: none of them.")


def _show_planned(table: pd.DataFrame, planned: int, cost: str) -> None:
    """Show the power with the planned number of participants per condition."""
    st.markdown(
        f"**Power with the planned {planned:,} participants per condition** ({escape_markdown(cost)})\n\n"
        + "\n".join(f"- {line}" for line in tables.describe_power(table, planned))
    )


def _show_contrasts(table: pd.DataFrame, question: PowerAnalysis) -> None:
    """Show the power of each planned contrast by sample size."""
    st.markdown("**Power of the planned contrasts, by participants per condition**")
    if table.empty:
        st.caption("The plan has no contrast between two conditions that are simulated.")
        return
    draw_table(tables.tabulate_contrasts(table, question.planned_size), "contrasts")
    st.caption(
        f"The share of simulated studies in which the contrast, corrected for the number of contrasts (Holm), has "
        f"{question.criterion}; in brackets its 95% interval, in percent. A contrast without a finite estimate counts "
        "as not significant. Needed: the smallest size at which the whole interval is above 80%; a dash: none of these "
        "sizes, so try larger sizes or more simulated studies."
    )


def _show_curve(question: PowerAnalysis, table: pd.DataFrame, currency: str) -> None:
    """Show power by sample size, with the pay of each size in its numbers."""
    numbers.chart(
        power.figure(table[~power.is_contrast(table)], planned=question.planned_size, simulated=question.is_simulated),
        table,
        "power",
        TESTS,
        headings={**MULTIPLE, "participants": "Total participants", "cost": f"Total pay, {currency}"},
        order=ORDER,
    )
    st.caption(
        f"Power: the share of simulated studies whose test has {question.criterion}. The 95% intervals are due to the "
        "number of simulated studies. The dotted line across is the target power of 80%. Points of one size are drawn "
        "side by side."
    )
