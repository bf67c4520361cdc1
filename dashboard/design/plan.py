"""The analysis plan of a study: participants, models, exclusions and interim analyses, and their power."""

from __future__ import annotations

import streamlit as st

from dashboard.design.contrasts import choose_contrasts, choose_stopping
from dashboard.design.editor import Editor, change, find_study
from dashboard.design.fields import follow, show_all, show_faults
from dashboard.design.settings import EXCLUSIONS, MEANS, PLAN, PRIORS, SIZE_WITHIN, WITHIN
from dashboard.power import planning
from dashboard.shared.messages import show_errors
from study.analysis.bayes.priors import Priors
from study.plan.draft import MISSING
from study.plan.preregistration import DEFAULT, NESTED

SLOPES = "Random slopes of participants, categories and images"
INTERCEPTS = "Random intercepts only, as in the paper"
OWN = "Models written in the file"


def show_plan(editor: Editor) -> None:
    """Draw the plan with its power curve."""
    within = editor.value(WITHIN.place)
    show_all(editor, (SIZE_WITHIN, *PLAN[1:]) if within else PLAN, 2)
    _choose_models(editor)
    choose_contrasts(editor)
    with st.expander("Estimated means"):
        show_all(editor, MEANS, 2)
        show_faults(editor, "analysis.means")
    with st.expander("Priors of Bayesian fits"):
        _choose_priors(editor)
    with st.expander("Exclusion rules"):
        show_all(editor, EXCLUSIONS, 2)
    with st.expander("Interim analyses"):
        choose_stopping(editor)
    st.header("Power", anchor=False)
    asked = st.toggle(
        "Simulate studies with this plan",
        key=f"design.{editor.name}.power",
        help="Every change of the plan needs new simulations, so they are off until you want them.",
    )
    study = find_study(editor) if asked else None
    if study is not None and study.settings is not None:
        with show_errors():
            question = planning.choose_analysis(study)
            if question is not None:
                planning.show(question)


def _choose_priors(editor: Editor) -> None:
    show_all(editor, PRIORS, 3)
    if editor.config is not None:
        st.caption(Priors.of_plan(editor.config.analysis).describe(correlated=True))


def _choose_models(editor: Editor) -> None:
    value = editor.draft.get("analysis.models")
    current = SLOPES if value in (MISSING, DEFAULT) else INTERCEPTS if value == NESTED else OWN
    key = f"design.{editor.name}.models"
    follow(key, current)

    def write() -> None:
        chosen = st.session_state[key]
        if chosen == SLOPES:
            change(editor.path, {"analysis.models": MISSING, "analysis.tests": MISSING})
        elif chosen == INTERCEPTS:
            change(editor.path, {"analysis.models": NESTED, "analysis.tests": "chi_square"})

    st.radio(
        "Mixed models",
        (SLOPES, INTERCEPTS, *([OWN] if current == OWN else [])),
        key=key,
        on_change=write,
        help="Without random slopes the tests reject too often if participants differ in the effect of trial types, or "
        "categories or images in the effect of explanations. Results report the paper's models beneath in any case.",
    )
    show_faults(editor, "analysis.models")
