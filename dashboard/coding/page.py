"""Coding: a rater reads each text next to the images of its unit, blinded, and gives it a code by key or mouse."""

from __future__ import annotations

from html import escape

import streamlit as st

from dashboard.coding import agreement
from dashboard.shared import links, service
from dashboard.shared.messages import escape_markdown, show_errors
from study.bundle import Bundle
from study.collection.coding import LONGEST_NAME, CodingList, TextToCode
from study.plan.coding import format_code
from study.plan.texts import texts_of
from study.store.rows import Mode

WIDTH = 680
"""Of the images of a unit, next to each other, and of the text below them, px."""


def page() -> None:
    """Draw the page."""
    st.title("Coding", anchor=False)
    st.caption(
        "Two raters say of each text whether it matches the images. Neither sees a participant, a condition or the "
        "other rater's codes, and each has the texts in a random order of their own."
    )
    with show_errors():
        studies = service.get_acting_researcher().list_coded_studies()
        if not studies:
            st.info("You can code no study: none has asked participants for texts yet, or your role does not allow it.")
            links.show_link("Studies", "studies")
            return
        study = links.selectbox("Study", studies, studies[0], key="study", width=420)
        links.show()
        modes = _choose_modes(study)
        agreement.show_progress(study, modes)
        with show_errors():
            _show_coding(study, modes)
        agreement.show(study, modes)


def _choose_modes(study: str) -> tuple[Mode, ...]:
    """Choose texts of participants, or of simulated ones where there are any; never both."""
    statuses = [status for status in service.get_acting_researcher().studies() if status.name == study]
    kinds = {mode for status in statuses for mode in status.sessions}
    if "sim" not in kinds:
        return ("live",)
    simulated = st.toggle("Texts of simulated participants", value="live" not in kinds, key=f"coding_simulated_{study}")
    return ("sim",) if simulated else ("live",)


def _show_coding(study: str, modes: tuple[Mode, ...]) -> None:
    """Draw the text that is open, and the codes to choose from."""
    researcher = service.get_acting_researcher()
    rater = "" if researcher.account.address is not None else _choose_rater()
    if rater is None:
        return
    listed = researcher.load_coding(study, modes, rater)
    if not listed.texts:
        st.info("There are no texts yet.")
        return
    key = f"coding_at_{study}_{modes[0]}_{listed.rater}"
    number = _find_open(listed, key)
    _show_text(listed.texts[number])
    with st.container(horizontal=True):
        _show_codes(study, modes, listed, number, key)
    _show_position(listed, number, key)


def _choose_rater() -> str | None:
    """Return the name of a rater without an account; None until it is given.

    The field is gone then: a key that gives a code must not be typed into it.
    """
    if rater := st.session_state.get("coding_as"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(escape_markdown(f"You code as {rater}."), width="content")
            st.button("Change", key="coding_change", on_click=st.session_state.pop, args=("coding_as",))
        return str(rater)
    with st.form("coding_rater", border=False):
        name = st.text_input("Your name as a rater", key="coding_name", max_chars=LONGEST_NAME, width=420)
        st.caption("Your codes are kept under it: go on later under the same name.")
        asked = st.form_submit_button("Start coding")
    if asked and name.strip():
        st.session_state["coding_as"] = name.strip()
        st.rerun()
    return None


def _find_open(listed: CodingList, key: str) -> int:
    """Return the place of the text that is open: the chosen one, or else the first without a code."""
    places = {text.id: place for place, text in enumerate(listed.texts)}
    chosen = st.session_state.get(key)
    if chosen in places:
        return places[chosen]
    return next((place for place, text in enumerate(listed.texts) if text.code is None), len(places) - 1)


def _show_text(text: TextToCode) -> None:
    """Draw the images of the unit, and the text as it was written."""
    folders = {status.study_hash: status.folder for status in service.get_acting_researcher().studies()}
    bundle = Bundle(folders[text.study_hash])
    legends = texts_of(bundle.manifest)
    assets = text.trial.assets
    shown = ((assets.target, legends["target_legend"]), (assets.target_map, legends["map_legend"]))
    for place, (sha256, legend) in zip(st.columns(2, wrap=False, width=WIDTH), shown, strict=True):
        place.image(str(bundle.asset(sha256)), width="stretch", caption=escape_markdown(legend), alt=legend)
    lines = escape(text.text).replace("\n", "<br>")
    st.html(f'<p class="coded-text" dir="auto" style="max-width:{WIDTH}px">{lines}</p>')


def _show_codes(study: str, modes: tuple[Mode, ...], listed: CodingList, number: int, key: str) -> None:
    """Draw a button for each code; its key is the number in front of it."""
    text = listed.texts[number]
    for place, code in enumerate(listed.codes, 1):
        st.button(
            format_code(code),
            key=f"code_{code}",
            shortcut=str(place),
            type="primary" if code == text.code else "secondary",
            disabled=listed.is_final and text.code is not None,
            on_click=_give_code,
            args=(study, modes, listed, number, code, key),
        )


def _give_code(study: str, modes: tuple[Mode, ...], listed: CodingList, number: int, code: str, key: str) -> None:
    """Store a code, and open the next text without one; after a change of mind, the text after it."""
    text = listed.texts[number]
    with show_errors():
        service.get_acting_researcher().code_texts(study, {text.id: code}, modes, listed.rater)
        following = [*listed.texts[number + 1 :], *listed.texts[:number]]
        waiting = [one for one in following if one.code is None]
        st.session_state[key] = (waiting or following or [text])[0].id


def _show_position(listed: CodingList, number: int, key: str) -> None:
    """Draw how far the rater is, and the ways back and on."""

    def go(place: int) -> None:
        st.session_state[key] = listed.texts[place].id

    last = len(listed.texts) - 1
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Back", key="coding_back", shortcut="Left", on_click=go, args=(max(0, number - 1),), disabled=not number
        )
        st.button(
            "Next",
            key="coding_next",
            shortcut="Right",
            on_click=go,
            args=(min(last, number + 1),),
            disabled=number == last,
        )
        st.caption(
            f"Text {number + 1} of {len(listed.texts)} in your order. You have coded {listed.n_coded}.", width="content"
        )
    st.progress(listed.n_coded / len(listed.texts), width=WIDTH)
