"""How far the coding is, how well the raters agree once all texts are coded, and the removal of a rater."""

from __future__ import annotations

import streamlit as st

from dashboard.shared import links, service
from dashboard.shared.messages import escape_markdown, show_errors
from study.collection.access.permissions import Permission
from study.collection.coding import CodingProgress
from study.plan.coding import format_code
from study.store.rows import Mode


def show_progress(study: str, modes: tuple[Mode, ...]) -> None:
    """Say how many texts are not coded yet, and by whom."""
    progress = service.get_acting_researcher().load_coding_progress(study, modes)
    if modes == ("sim",):
        st.badge("Simulated: not evidence", color="orange")
    said = progress.describe()
    st.caption(escape_markdown(said or f"Both raters have coded all {progress.texts:,} texts."))


def show(study: str, modes: tuple[Mode, ...]) -> None:
    """Draw the agreement for accounts that may see outcomes, and the removal of a rater for owners."""
    researcher = service.get_acting_researcher()
    progress = researcher.load_coding_progress(study, modes)
    permission = Permission.DESIGN if modes == ("sim",) else Permission.SEE_OUTCOMES
    st.header("Agreement of the raters", anchor=False)
    refusal = researcher.explain_refusal(permission, study)
    if refusal is not None:
        st.caption(escape_markdown(refusal))
    elif not progress.is_complete:
        st.caption("It opens once both raters have coded every text, so that no code depends on another rater's.")
    else:
        _offer_agreement(study, modes)
    if progress.coded and researcher.may(Permission.MANAGE_MEMBERS, study):
        _offer_removal(study, modes, progress)


def _offer_agreement(study: str, modes: tuple[Mode, ...]) -> None:
    """Draw the button that opens the agreement, and what it shows from then on."""
    researcher, key = service.get_acting_researcher(), f"agreement_{study}_{modes[0]}"
    if not researcher.is_agreement_open(study, modes):
        st.caption("From the moment it is opened, no code can be changed any more. The audit trail records it.")
        if st.button("Open the agreement", key=key):
            with show_errors():
                researcher.open_agreement(study, modes)
                st.rerun()
        return
    with show_errors():
        agreement, differences = researcher.open_agreement(study, modes)
        st.markdown(escape_markdown(agreement.describe()))
        first, second = differences.columns[-2:]
        named = agreement.table.rename(index=format_code, columns=format_code).rename_axis(index=first, columns=None)
        st.caption(escape_markdown(f"Texts by the code of {first} (rows) and of {second} (columns):"))
        st.dataframe(named, key=f"{key}_table", width="content")
        st.caption(f"Texts with different codes: {len(differences)}. A response is correct only if both codes say so.")
        shown = differences.assign(**{rater: differences[rater].map(format_code) for rater in (first, second)})
        st.dataframe(shown.rename(columns={"text": "Text", "item": "Trial"}), hide_index=True, key=f"{key}_rows")
        links.show_link("Results", "results", results_source=study)


def _offer_removal(study: str, modes: tuple[Mode, ...], progress: CodingProgress) -> None:
    """Draw the form that removes a rater with their codes."""
    with st.expander("Remove a rater"):
        st.caption("All codes of the rater are erased, and another one can start. The audit trail keeps the reason.")
        with st.form(f"remove_rater_{study}", border=False):
            rater = st.selectbox("Rater", list(progress.coded), key="remove_rater_who", width=420)
            reason = st.text_input("Reason", key="remove_rater_why", max_chars=300)
            asked = st.form_submit_button("Remove and log")
        if asked:
            with show_errors():
                removed = service.get_acting_researcher().remove_rater(study, rater, reason, modes)
                st.success(f"Removed, with {removed} codes.")
