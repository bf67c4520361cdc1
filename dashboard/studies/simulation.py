"""Run simulated participants."""

from __future__ import annotations

import streamlit as st

from core.names import format_name
from core.parameters import summary
from dashboard.shared import cache, links, progress, service
from dashboard.shared.messages import show_errors
from dashboard.studies.saying import keep_done, show_said
from dashboard.studies.workspace_studies import Study, count_finished
from study.plan.mixture import MIXTURE, parse_mixture
from study.plan.simulated_participants import THEORIES
from study.simulate import simulate
from study.tasks import find_task
from study.tasks.theory import SWITCH

DEFAULT = parse_mixture(MIXTURE)
SIMULATION = " simulation"
"""After a study's name, the place of what is said here; no study has a name with a space."""


def show(study: Study) -> None:
    """Choose number, mixture and seed; then simulate."""
    st.caption(
        "Simulated participants take the same steps as real ones, are marked in every table, and are not evidence. "
        "Repeating the same settings adds nothing; a larger number adds participants to the existing ones."
    )
    show_said(study.name + SIMULATION)
    done = count_finished(study.versions, "sim")
    if done:
        with st.container(horizontal=True, vertical_alignment="center"):
            some = "1 simulated participant has" if done == 1 else f"{done:,} simulated participants have"
            st.markdown(f"{some} completed the study.", width="content")
            links.show_link("See their results", "results", results_source=study.name)
    with st.form(f"simulate_{study.name}"):
        left, right = st.columns(2)
        people = left.number_input("Simulated participants", 1, 2_000, 40, 4, key="simulate_people")
        seed = right.number_input("Random seed", 0, 2**31, 0, 1, key="simulate_seed")
        chosen = choose_mixture("simulate")
        switch = _choose_switch(study)
        go = st.form_submit_button("Simulate", type="primary", key="simulate_go")
    if go:
        _simulate(study, int(people), chosen, int(seed), switch)


def _choose_switch(study: Study) -> float:
    """Choose how often simulated participants follow the AI, in a study that asks twice."""
    if study.bundle is None or find_task(study.bundle.manifest.config).steps == 1:
        return SWITCH
    return st.slider(
        "How often they follow an AI that contradicts them",
        0.0,
        1.0,
        SWITCH,
        0.05,
        help="The probability where no explanation is shown; explanations move it, as the kinds above say.",
        key="simulate_switch",
    )


def choose_mixture(place: str) -> dict[str, float]:
    """Choose how often each model of participants occurs; ``place`` begins the names of the sliders in the session."""
    st.caption("How often each kind of simulated participant occurs, as weights:")
    columns = st.columns(len(THEORIES), gap="medium")
    return {
        name: column.slider(
            format_name(name),
            0.0,
            1.0,
            DEFAULT.get(name, 0.0),
            0.05,
            help=summary(THEORIES[name]),
            key=f"{place}_{name}",
        )
        for column, name in zip(columns, THEORIES, strict=True)
    }


def _simulate(study: Study, people: int, chosen: dict[str, float], seed: int, switch: float) -> None:
    name, researcher = study.name, service.get_acting_researcher()
    with cache.one_at_a_time(f"simulate {name}") as ours, show_errors():
        if not ours:
            st.info("Participants are being simulated in another window.")
            return
        with progress.bar("Simulating") as report:
            if study.bundle is not None and study.bundle.study_hash not in {one.study_hash for one in study.versions}:
                researcher.add_study(study.bundle.folder)  # closed to participants
            researcher.start_simulation(name, people)
            new = simulate(service.get_service(), name, people, chosen, seed, report, switch=switch)
        made = f"{new:,} new simulated responses, those to practice trials and attention checks included."
        keep_done(name + SIMULATION, made if new else "These simulated participants exist already: nothing was added.")
        st.rerun()  # the counts above were read before
