"""The teaching of one trial: its examples, other possible sets, what the learner infers, and the saliency map."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.names import format_name
from core.teaching.policies import POLICIES
from core.types import TeachingSet
from dashboard.explore import figures
from dashboard.shared import live, numbers
from dashboard.shared.messages import escape_markdown
from dashboard.teaching import figures as teachingfigures
from dashboard.teaching import jobs as work
from dashboard.teaching.jobs import LessonResult, SaliencyMapResult
from study.building.averaged import AVERAGED, WARNING
from study.bundle import TYPE_LABELS, Bundle, Trial
from study.conditions import CONDITIONS, format_condition

ERROR = "Standard error"
EXAMPLE = 76
"""Width of an example in a card, px: two side by side."""


def choose_trial(bundle: Bundle) -> Trial:
    """Choose a trial by its id, type and question."""
    trials = {trial.id: trial for trial in (*bundle.manifest.trials, *bundle.manifest.practice)}
    return trials[
        st.selectbox(
            "Trial",
            list(trials),
            format_func=lambda name: _format_trial(trials[name]),
            key="trial",
            bind="query-params",
        )
    ]


def _format_trial(trial: Trial) -> str:
    return f"{trial.id}: {trial.target} or {trial.alternative}? {TYPE_LABELS[trial.trial_type]}"


def show(bundle: Bundle, trial: Trial) -> None:
    """Show everything about one trial."""
    right = trial.truth == trial.target
    verdict = (
        ":green-badge[AI right]" if right else f":orange-badge[AI wrong, true class: {escape_markdown(trial.truth)}]"
    )
    st.header(
        f"The AI predicts {escape_markdown(trial.target)}, {trial.ai_probability:.0%}, "
        f"not {escape_markdown(trial.alternative)} {verdict}",
        anchor=False,
    )
    left, right_side = st.columns([1, 1.6], gap="large")
    with left:
        live.draw_when_ready(work.make_saliency_map_task(bundle, trial), _show_saliency_map, "map")
    with right_side:
        st.markdown("**What the learner infers from the trial's examples**")
        _facts(trial)
    conditions = bundle.manifest.conditions
    _prior_accuracy(bundle.manifest.environment.get(AVERAGED))
    live.draw_when_ready(
        work.make_lesson_task(bundle, trial), lambda taught: _lesson(taught, trial, conditions), "lesson"
    )


def _show_saliency_map(mapped: SaliencyMapResult) -> None:
    """Draw the image and its saliency map, or on request its standard error."""
    error = mapped.explanation.error
    wanted = error is not None and st.toggle(ERROR, key="map_error", help="Sampling error of the saliency map.")
    drawing = figures.HeatmapDrawing(mapped.seen, mapped.explanation)
    plain, over = st.columns(2, wrap=False)
    plain.image(drawing.draw_input(), caption="What the AI saw", width="stretch", alt="What the AI saw")
    if wanted:
        over.image(figures.draw_standard_error(mapped.explanation), caption=ERROR, width="stretch", alt=ERROR)
    else:
        over.image(drawing.draw_overlay(0.8), caption="Heatmap", width="stretch", alt="Heatmap")
    if error is None:
        st.caption("This method has no standard error.")
        return
    values = mapped.explanation.map
    st.caption(
        f"Sampling error of the heatmap (standard error): at most {float(error.max()):.3g}, typically "
        f"{float(error.median()):.3g}. The heatmap has values from {float(values.min()):.3g} to "
        f"{float(values.max()):.3g}."
    )


def _facts(trial: Trial) -> None:
    """Show what was frozen of its teaching."""
    facts = {
        "P before": (
            "p_prior",
            "{:.1%}",
            "Probability that the learner gives to the AI's prediction before any example.",
        ),
        "P after": ("p_learner", "{:.1%}", "The same probability after the trial's four examples."),
        "Better than (of sets)": ("rank", "{:.1%}", "Share of the randomly drawn sets after which P is no higher."),
        "Sets scored": ("sets_scored", "{:,}", "Sets of four examples for which P was computed."),
    }
    grid = st.grid(len(facts), min_column_width=120)
    for label, (name, form, says) in facts.items():
        value = getattr(trial.teaching, name)
        if value is not None:
            grid.metric(label, form.format(value), help=says)
    st.caption(
        "These values were frozen with the study. Teaching policy, the rule that chose the examples: "
        f"{trial.teaching.policy or 'not known'}."
    )


def _prior_accuracy(told: str | None) -> None:
    """Show how accurate the learner's prior is as a classifier, where the study was built with it."""
    if told is not None:
        facts, _, warning = told.partition(WARNING)
        st.caption(f"The learner's prior, what it assumes about the AI before any example. {escape_markdown(facts)}")
        if warning:
            said = warning.strip()
            st.warning(escape_markdown(said[:1].upper() + said[1:]))


def _lesson(taught: LessonResult, trial: Trial, conditions: tuple[str, ...]) -> None:
    st.subheader("Teaching sets by policy", anchor=False)
    grid = st.grid(len(taught.lesson.sets), min_column_width=180)
    for policy, chosen in taught.lesson.sets.items():
        with grid.container(border=True, height="stretch"):
            _set(taught, policy, chosen, trial, [name for name in conditions if CONDITIONS[name].policy == policy])
    with st.expander("Data table"):
        numbers.table(taught.set_table(), "teaching-sets")
    st.subheader("The example pool in the learner's space", anchor=False)
    policy = st.segmented_control(
        "Show the set of", list(taught.lesson.sets), default=_own(taught, trial), required=True, key="policy",
        format_func=format_name,
    )  # fmt: skip
    numbers.chart(*teachingfigures.plane(taught, policy, (trial.target, trial.alternative)), "teaching-pool")
    st.caption(
        "Each mark is an image that could be an example. The figure shows the two main axes of the covariance by which "
        "the learner generalises from one image to another (of its prior). They explain "
        f"{taught.lesson.explained:.0%} of it: images that are far apart here teach differently, but images that are "
        "close together may differ in what is not shown."
    )
    _beliefs(taught.belief_table(), _own(taught, trial))
    _search(taught, trial)


def _own(taught: LessonResult, trial: Trial) -> str:
    """Return the study's policy if it has a set."""
    sets, policy = taught.lesson.sets, str(trial.teaching.policy)
    return policy if policy in sets else next(iter(sets))


def _set(taught: LessonResult, policy: str, chosen: TeachingSet, trial: Trial, conditions: list[str]) -> None:
    """Show a policy's set; ``conditions`` of the study show it next to the study's own."""
    own = " :green-badge[the study's]" if policy == trial.teaching.policy else ""
    shown = "".join(f" :blue-badge[{format_condition(name)}]" for name in conditions)
    st.markdown(f"**{format_name(policy)}**: P\u00a0=\u00a0{chosen.p_learner:.1%}{own}{shown}")
    st.caption(POLICIES[policy].reason.format(scored=chosen.scored))
    half = len(chosen.indices) // 2
    for category, part in ((trial.target, chosen.indices[:half]), (trial.alternative, chosen.indices[half:])):
        st.caption(escape_markdown(category))
        alt = [f"Example {k} of {category}" for k in range(1, len(part) + 1)]
        st.image([taught.thumbnails[taught.lesson.ids[i]] for i in part], width=EXAMPLE, alt=alt)


def _beliefs(table: pd.DataFrame, own: str) -> None:
    st.subheader("How the learner's belief changes with each example", anchor=False)
    policies = list(dict.fromkeys(table["policy"]))
    shown = st.multiselect(
        "Policies",
        policies,
        list(dict.fromkeys([own, *(name for name in policies if name == "random")])),
        key="belief_policies",
        format_func=format_name,
    )
    chosen = table[table["policy"].isin(shown)]
    if not shown:
        st.info("Choose a policy.")
        return
    probability, odds = teachingfigures.beliefs(chosen)
    left, right = st.columns(2)
    left.plotly_chart(probability, key="figure_belief_p", config={"displaylogo": False})
    right.plotly_chart(odds, key="figure_belief_odds", config={"displaylogo": False})
    with st.expander("Data table"):
        numbers.table(table, "teaching-beliefs")
    st.caption(
        "Examples alternate between the two categories. The first figure shows P, averaged over the learner's "
        "uncertainty; the second the log-odds of the AI's prediction, mean and standard deviation of that uncertainty."
    )


def _search(taught: LessonResult, trial: Trial) -> None:
    chosen = taught.lesson.sets[_own(taught, trial)]
    st.subheader("The search", anchor=False)
    numbers.chart(*teachingfigures.search(chosen), "teaching-search")
    st.caption(
        f"{chosen.scored:,} sets of four examples were scored: P was computed after each. The line is the highest P so "
        f"far. The study's set is better than {chosen.rank:.1%} of the random sets: after those, P is no higher."
    )
