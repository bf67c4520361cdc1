"""The members of a study with their roles, and the controls to add, change and remove them."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.errors import ForetellError
from dashboard.shared import links, service
from dashboard.shared.messages import escape_markdown
from dashboard.studies.saying import LINK_MADE, keep_link, keep_said, show_said
from dashboard.studies.workspace_studies import Study
from study.collection.access.accounts import Account
from study.collection.access.members import Member
from study.collection.access.permissions import ROLES, Permission, Role
from study.collection.access.provider import parse_address

FIRST: Role = "owner"
USUAL: Role = "viewer"
"""Role that is offered first, as it may do least."""


def show(study: Study) -> None:
    """Draw the members, and the controls of those who may change them."""
    researcher = service.get_acting_researcher()
    members = researcher.list_members(study.name)
    refusal = researcher.explain_refusal(Permission.MANAGE_MEMBERS, study.name)
    st.caption(
        "Each member logs in under their own e-mail address, and the audit trail records what they do under it. "
        "Administrators (the shared password, and this server's command line) may do everything."
    )
    show_said(study.name)
    if not members:
        st.info("This study has no members yet: anyone who logs in can use it. Add its owner first.")
    for one in members:
        _show_member(study.name, one, researcher.account, may_change=refusal is None)
    if refusal is None:
        _show_adding(study.name, bool(members))
    else:
        st.caption(escape_markdown(refusal))
    if researcher.account.is_administrator:
        links.show_link("All accounts", "accounts")
    with st.expander("What each role may do"):
        rights = pd.DataFrame([(role.title, role.summary) for role in ROLES.values()], columns=["Role", "Can do"])
        st.table(rights, border="horizontal", hide_index=True)


def _show_member(study: str, one: Member, viewer: Account, *, may_change: bool) -> None:
    is_own = one.account == viewer.address
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        with st.container(width="stretch", gap=None, key=f"person_{one.account}"):
            st.markdown(f"**{escape_markdown(one.account)}**{' (you)' if is_own else ''}")
            st.caption(escape_markdown(f"Login: {one.login} · added {one.added_at:%Y-%m-%d} by {one.added_by}"))
        if not may_change:
            st.markdown(ROLES[one.role].title, width="content")
            return
        _choose_role(study, one)
        of = (study, one.account)
        if not one.has_login or viewer.is_administrator:
            st.button(
                "Login link",
                key=f"member_link_{study}_{one.account}",
                help="Makes a link with which this member chooses a password, once, within 7 days.",
                on_click=_make_link,
                args=of,
            )
        st.button("Remove", key=f"member_remove_{study}_{one.account}", on_click=_remove, args=of)


def _choose_role(study: str, one: Member) -> None:
    key = f"member_role_{study}_{one.account}"
    st.session_state[key] = one.role  # what is stored, whoever changed it
    st.selectbox(
        f"Role of {one.account}",
        list(ROLES),
        key=key,
        format_func=_title_of,
        label_visibility="collapsed",
        on_change=_change,
        args=(study, one.account, key),
        width=200,
    )


def _show_adding(study: str, has_members: bool) -> None:
    st.header("Add a member", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("E-mail address", key=f"member_address_{study}", placeholder="ada@example.org", width=320)
        roles: list[Role] = list(ROLES) if has_members else [FIRST]
        key = f"member_role_{study}"
        if st.session_state.get(key) not in roles:
            st.session_state[key] = USUAL if has_members else FIRST
        st.selectbox("Role", roles, key=key, format_func=_title_of, width=220)
        st.button("Add", key=f"member_add_{study}", type="primary", on_click=_add, args=(study,))


def _title_of(role: Role) -> str:
    return ROLES[role].title


def _add(study: str) -> None:
    key, role = f"member_address_{study}", st.session_state[f"member_role_{study}"]
    address = st.session_state[key].strip()
    with keep_said(study, f"Added {address} as {_title_of(role).lower()} of {study}.") as said:
        researcher = service.get_acting_researcher()
        account = parse_address(address)
        if account in {one.account for one in researcher.list_members(study)}:
            raise ForetellError(f"{account} is a member already. Change the role in their row.")
        said.append(researcher.set_member(study, address, role))
        st.session_state[key], st.session_state[f"member_role_{study}"] = "", USUAL  # not the role of the last one


def _change(study: str, account: str, key: str) -> None:
    role = st.session_state[key]
    with keep_said(study, f"{account} is now {_title_of(role).lower()} of {study}.") as said:
        said.append(service.get_acting_researcher().set_member(study, account, role))


def _remove(study: str, account: str) -> None:
    with keep_said(study, f"{account} is no longer a member of {study}."):
        service.get_acting_researcher().remove_member(study, account)


def _make_link(study: str, account: str) -> None:
    with keep_said(study, LINK_MADE.format(account=account)):
        keep_link(study, service.get_acting_researcher().make_member_link(study, account))
