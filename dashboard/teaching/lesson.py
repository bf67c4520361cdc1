"""The teaching of one trial: its examples, other possible sets, what the learner infers, and the saliency map."""

from __future__ import annotations

import streamlit as st

from core.names import format_name
from core.teaching.policies import POLICIES
from core.types import TeachingSet
from dashboard.shared import links, live, numbers
from dashboard.shared.messages import escape_markdown, format_message
from dashboard.studies.workspace_studies import Study
from dashboard.teaching import figures as teachingfigures
from dashboard.teaching import jobs as work
from dashboard.teaching import sets
from dashboard.teaching.heatmap import show_frozen, show_heatmap
from dashboard.teaching.jobs import LessonResult
from study.building.averaged import AveragedAccuracy
from study.bundle import TYPE_LABELS, Bundle, Trial
from study.facts import TeachingFacts


def choose_trial(bundle: Bundle) -> Trial:
    """Choose a trial by its id, type and question."""
    trials = {trial.id: trial for trial in (*bundle.manifest.trials, *bundle.manifest.practice)}
    given = st.query_params.get("trial", "")
    if given.partition(":")[0] in trials:  # former links have the whole label
        st.query_params["trial"] = given.partition(":")[0]
    chosen = links.selectbox(
        "Trial", list(trials), next(iter(trials)), key="trial", format_func=lambda name: _format_trial(trials[name])
    )
    return trials[chosen]


def _format_trial(trial: Trial) -> str:
    return f"{trial.id}: {trial.target} or {trial.alternative}? {TYPE_LABELS[trial.trial_type]}"


def show(study: Study, bundle: Bundle, trial: Trial) -> None:
    """Show everything about one trial."""
    right = trial.truth == trial.target
    verdict = (
        ":green-badge[AI right]" if right else f":orange-badge[AI wrong, true class: {escape_markdown(trial.truth)}]"
    )
    st.header(
        f"The AI predicts {escape_markdown(trial.target)} ({trial.ai_probability:.0%}); "
        f"foil: {escape_markdown(trial.alternative)} {verdict}",
        anchor=False,
    )
    left, right_side = st.columns([1, 1.6], gap="large")
    with left:
        live.draw_when_ready(
            work.make_heatmap_task(bundle, trial),
            lambda made: show_heatmap(made, trial),
            "map",
            meanwhile=lambda: show_frozen(bundle, trial),
        )
    with right_side:
        st.markdown("**What the learner infers from the trial's examples**")
        _show_facts(trial.teaching)
    live.draw_when_ready(
        work.make_lesson_task(bundle, trial), lambda taught: _show_lesson(taught, study, bundle, trial), "lesson"
    )


def _show_facts(teaching: TeachingFacts) -> None:
    """Show what was frozen of a trial's teaching."""
    facts = [
        (sets.BEFORE, teaching.p_prior, "{:.1%}", "P before the learner sees any example."),
        (sets.AFTER, teaching.p_learner, "{:.1%}", "P after the trial's four examples."),
        (sets.SCORED, teaching.sets_scored, "{:,}", "Sets of four examples for which P was computed."),
    ]
    grid = st.grid(2, min_column_width=150)
    for label, value, form, says in facts:
        if value is not None:
            grid.metric(label, form.format(value), help=says)
    if teaching.rank is not None:
        label, written, says = format_rank(teaching)
        grid.metric(label, written, help=says)
    policy = format_name(teaching.policy) if teaching.policy else "not known"
    st.caption(f"Frozen with the study. Policy that chose the examples: {policy}.")


def format_rank(teaching: TeachingFacts) -> tuple[str, str, str]:
    """Format how the study's set compares with the random ones: a label, the value, and what it means.

    A policy that chooses among the sets drawn has one of them; the others' sets have no place among these.
    """
    assert teaching.rank is not None
    higher = 1 - teaching.rank
    policy = teaching.policy or ""
    if policy in POLICIES and POLICIES[policy].of_drawn and teaching.sets_scored:
        place = 1 + round(higher * teaching.sets_scored)
        return (
            "Rank of the set",
            f"{place:,} of {teaching.sets_scored:,}",
            "Among the sets that were drawn: the first has the highest P.",
        )
    return "Random sets above", f"{higher:.1%}", "Share of the sets drawn at random after which P is higher."


def _show_prior(prior: AveragedAccuracy | None, study: Study) -> None:
    """Show how accurate the learner's prior is as a classifier."""
    if prior is None:
        return
    st.caption(f"**The learner's prior:** {escape_markdown(prior.summary)}", help=escape_markdown(prior.facts))
    if prior.warning:
        st.warning(format_message(prior.warning))
        if study.file is not None:
            links.show_link("Set the damping in Design", "design", study=study.file.stem, part="Trials")


def _show_lesson(taught: LessonResult, study: Study, bundle: Bundle, trial: Trial) -> None:
    _show_prior(taught.prior, study)
    st.subheader("Teaching sets by policy", anchor=False)
    sets.show_sets(taught, trial, bundle.manifest.conditions)
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
    _beliefs(taught, _own(taught, trial))
    _search(taught, trial)


def _own(taught: LessonResult, trial: Trial) -> str:
    """Return the study's policy if it has a set."""
    sets, policy = taught.lesson.sets, str(trial.teaching.policy)
    return policy if policy in sets else next(iter(sets))


def _beliefs(taught: LessonResult, own: str) -> None:
    table = taught.belief_table()
    st.subheader("How the learner's belief changes with each example", anchor=False)
    policies = list(dict.fromkeys(table["policy"]))
    first = list(dict.fromkeys([own, *(name for name in policies if name == "random")]))
    shown = st.multiselect("Policies", policies, first, key="belief_policies", format_func=format_name)
    if not shown:
        st.info("Choose a policy.")
        return
    chosen = table[table["policy"].isin(shown)]
    for place, kind, figure in zip(st.columns(2), ("p", "odds"), teachingfigures.beliefs(chosen), strict=True):
        place.plotly_chart(figure, key=f"figure_belief_{kind}", config={"displaylogo": False})
    with st.expander("Data table"):
        numbers.table(
            table,
            "teaching-beliefs",
            {"policy": format_name, "probability": sets.write_share},
            headings={"examples": "Examples seen", "probability": "P", "added": "Last example"},
        )
    st.caption(
        "Examples alternate between the two categories. The first figure shows P, averaged over the learner's "
        "uncertainty; the second the log-odds of the AI's prediction, mean and standard deviation of that uncertainty."
    )


def _search(taught: LessonResult, trial: Trial) -> None:
    chosen = taught.lesson.sets[_own(taught, trial)]
    st.subheader("The search", anchor=False)
    figure, table = teachingfigures.search(chosen)
    numbers.chart(figure, table, "teaching-search", {"best": sets.write_share}, headings={"best": "Best P so far"})
    st.caption(
        f"P was computed for {chosen.scored:,} sets of four examples. The line is the highest P so far, recorded at "
        f"the marks only. {describe_others(chosen)}"
    )


def describe_others(chosen: TeachingSet) -> str:
    """Say in a sentence after how many of the random sets P is higher than after the chosen one, or the same."""
    which = "other random sets" if chosen.others < chosen.scored else "random sets"
    given = (
        f"{chosen.higher:,} of the {chosen.others:,} {which} {'gives' if chosen.higher == 1 else 'give'}"
        if chosen.higher
        else (f"None of the {chosen.others:,} {which} gives")
    )
    equal = f"; {chosen.equal:,} {'gives' if chosen.equal == 1 else 'give'} the same P" if chosen.equal else ""
    return f"{given} a higher P{equal}."
