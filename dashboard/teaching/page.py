"""Teaching: the examples a study shows with an image, why these, and what a learner infers from them."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.shared import links, service
from dashboard.shared.messages import format_message, show_errors
from dashboard.studies import building
from dashboard.studies.workspace_studies import Study, list_studies
from dashboard.teaching import lesson
from study.collection.access.permissions import Permission
from study.tasks import find_task
from study.workspace.workspace import home


def page() -> None:
    """Draw the page."""
    st.title("Teaching", anchor=False)
    st.caption(
        "What a Bayesian model of a participant, the learner, infers from a trial's examples. P: its probability of "
        "the AI's prediction."
    )
    with show_errors():
        building.take_done()
        researcher = service.get_acting_researcher()
        choices = list_studies(home(), researcher)
        studies = {study.name: study for study in choices if researcher.may(Permission.DESIGN, study.name)}
        if not studies:
            st.info("There is no study yet. Create one on the page Design.")
            return
        left, right = st.columns(2)
        with left:
            built = next((name for name, study in studies.items() if study.bundle is not None), next(iter(studies)))
            # Not bound to the address: Streamlit takes a bound parameter out of links to other pages, too.
            study = studies[links.selectbox("Study", list(studies), built, key="study")]
        _show_study(study, right)


def _show_study(study: Study, place: DeltaGenerator) -> None:
    """Draw the lesson of a trial, chosen in ``place``; of a study that is not built, how to build it."""
    trial = None
    task = None if study.bundle is None else find_task(study.bundle.manifest.config)
    if task is not None and not task.is_of_predictions:
        what = "units of the network" if task.of_units else "attributes"
        st.info(f"This study asks about {what}. It has no examples that teach a prediction.")
        return
    if study.bundle is not None:
        with place:
            trial = lesson.choose_trial(study.bundle)
    links.show()
    for fault in study.faults:
        st.error(format_message(fault))
    if study.bundle is None or trial is None:
        building.show(study)
        return
    if study.has_changed:
        building.show(study, has_check=False)
    lesson.show(study, study.bundle, trial)
