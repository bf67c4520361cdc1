"""Members of a study: who has which role, and the controls to add, change and remove them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pandas as pd
import streamlit as st

from core.errors import ForetellError
from dashboard.shared import service
from dashboard.shared.messages import escape_markdown
from dashboard.studies.workspace_studies import Study
from study.collection.members import Member
from study.collection.permissions import ROLES, Permission, Role

SAID, LINK = "members_said", "members_link"
"""In the session: what the last change did, and the last link, each with the study it belongs to."""


def show(study: Study) -> None:
    """Draw the table of members, and the controls of those who may change it."""
    researcher = service.get_acting_researcher()
    found = researcher.list_members(study.name)
    st.caption(
        "Each member logs in under their own e-mail address, and the audit trail records what they do under it. "
        "Administrators (the shared password, and this server's command line) may do everything."
    )
    if not found:
        st.info("This study has no members yet: everyone who logs in as before may use it. Add its owner first.")
    _show_table(found, researcher.account.address)
    refusal = researcher.explain_refusal(Permission.MANAGE_MEMBERS, study.name)
    if refusal is not None:
        st.caption(escape_markdown(refusal))
    else:
        _show_controls(study.name, found)
    with st.expander("What each role may do"):
        rights = pd.DataFrame([(role.title, role.summary) for role in ROLES.values()], columns=["Role", "May"])
        st.table(rights, border="horizontal", hide_index=True)


def _show_table(found: list[Member], own: str | None) -> None:
    rows = [
        {
            "Member": escape_markdown(f"{one.account}{' (you)' if one.account == own else ''}"),
            "Role": ROLES[one.role].title,
            "Login": escape_markdown(one.login),
            "Added": escape_markdown(f"{one.added_at:%Y-%m-%d} by {one.added_by}"),
        }
        for one in found
    ]
    if rows:
        st.table(pd.DataFrame(rows), border="horizontal", hide_index=True)


def _show_controls(study: str, found: list[Member]) -> None:
    _show_said(study)
    st.subheader("Add or change a member", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("E-mail address", key=f"member_address_{study}", placeholder="ada@example.org", width=320)
        roles: list[Role] = list(ROLES) if found else ["owner"]
        st.selectbox("Role", roles, key=f"member_role_{study}", format_func=lambda role: ROLES[role].title, width=220)
        st.button("Save member", key=f"member_save_{study}", type="primary", on_click=_save, args=(study,))
    if not found:
        return
    st.subheader("Link or removal", anchor=False)
    st.caption(
        "A member without a login needs a link, with which they choose a password once, within 7 days. Whoever opens "
        "the link first becomes this member: send it to them only."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        accounts = [one.account for one in found]
        st.selectbox("Member", accounts, key=f"member_chosen_{study}", width=320)
        st.button("Make a login link", key=f"member_link_{study}", on_click=_link, args=(study,))
        st.button("Remove from the study", key=f"member_remove_{study}", on_click=_remove, args=(study,))


def _show_said(study: str) -> None:
    said, link = st.session_state.pop(SAID, None), st.session_state.pop(LINK, None)
    if said is not None and said[0] == study:
        (st.success if said[1] else st.error)(escape_markdown(said[2]))
    if link is not None and link[0] == study:
        parts = urlsplit(st.context.url or "")
        st.code(f"{parts.scheme}://{parts.netloc}{link[1]}" if parts.netloc else link[1], language=None)
        st.caption("This link is shown only now.")


@contextmanager
def _saying(study: str, done: str) -> Iterator[None]:
    """Keep what a callback did, or why it did not, for the run that follows it."""
    try:
        yield
        st.session_state[SAID] = (study, True, done)
    except ForetellError as error:
        st.session_state[SAID] = (study, False, str(error))


def _save(study: str) -> None:
    address, role = st.session_state[f"member_address_{study}"], st.session_state[f"member_role_{study}"]
    with _saying(study, f"{address.strip()}: {ROLES[role].title.lower()} of {study}."):
        service.get_acting_researcher().set_member(study, address, role)
        st.session_state[f"member_address_{study}"] = ""


def _remove(study: str) -> None:
    address = st.session_state[f"member_chosen_{study}"]
    with _saying(study, f"{address} is no longer a member of {study}."):
        service.get_acting_researcher().remove_member(study, address)


def _link(study: str) -> None:
    address = st.session_state[f"member_chosen_{study}"]
    with _saying(study, f"A login link for {address}, for 7 days and one use:"):
        st.session_state[LINK] = (study, service.get_acting_researcher().make_member_link(study, address))
