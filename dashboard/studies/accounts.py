"""Accounts: every account of the workspace with its login and its roles, for administrators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import streamlit as st

from dashboard.shared import links, service
from dashboard.shared.messages import escape_markdown, show_errors
from dashboard.studies.saying import LINK_MADE, keep_link, keep_said, show_said
from study.collection.access.directory import AccountEntry
from study.collection.access.permissions import ROLES

PLACE = "all accounts"
"""Of what is said here; no study has a name with a space."""


class _Action(NamedTuple):
    """A button of an account: its name in the key, label and help, and what it calls with the address."""

    name: str
    label: str
    help: str
    call: Callable[[str], None]


def page() -> None:
    """Draw the page."""
    st.title("Accounts", anchor=False)
    st.caption(
        "All accounts with a role in a study, their own password, or a login link that still works. Change roles in "
        "each study."
    )
    with show_errors():
        researcher = service.get_acting_researcher()
        accounts = researcher.list_accounts()
        show_said(PLACE)
        if not accounts:
            st.info("There is no account yet. Add one below.")
        for one in accounts:
            _show_account(one, is_own=one.address == researcher.account.address)
        st.header("Add an account", anchor=False)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input("E-mail address", key="account_address", placeholder="ada@example.org", width=320)
            st.button(
                "Make a login link",
                key="account_add",
                help="They choose a password with it, and can then be given a role in a study.",
                on_click=_add,
            )


def _show_account(one: AccountEntry, *, is_own: bool) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        with st.container(width="stretch", gap="xsmall", key=f"person_{one.address}"):
            st.markdown(f"**{escape_markdown(one.address)}**{' (you)' if is_own else ''}")
            st.caption(escape_markdown(_describe_login(one)))
            _link_roles(one)
        for action in _list_actions(one):
            key = f"account_{action.name}_{one.address}"
            st.button(action.label, key=key, help=action.help, on_click=action.call, args=(one.address,))


def _link_roles(one: AccountEntry) -> None:
    """Draw a link to the members of each study in which an account has a role."""
    with st.container(horizontal=True, gap="small"):
        for study, role in one.roles.items():
            here = {"study": study, "section": "Members"}
            links.show_link(f"{ROLES[role].title} of {study}", "studies", place=one.address, **here)
        if not one.roles:
            st.caption("No role in any study.")


def _list_actions(one: AccountEntry) -> Iterator[_Action]:
    """List what an administrator can do with an account now."""
    yield _Action(
        "link",
        "Login link" if one.link_until is None else "New link",
        "Makes a link with which they choose a new password, once, within 7 days. It replaces an earlier one.",
        _make_link,
    )
    if one.link_until is not None:
        effect = "Ends their login link at once. A password that they have chosen stays."
        yield _Action("revoke", "Revoke", effect, _revoke_link)
    if one.has_password:
        effect = "Ends their password, links and logins at once. Roles stay, for a new link."
        yield _Action("end", "End login", effect, _end_login)


def _describe_login(one: AccountEntry) -> str:
    """Describe how an account logs in, or until when its link works with which it can choose a password."""
    if one.link_until is None:
        return f"Login: {one.login}"
    until = f"login link until {one.link_until:%Y-%m-%d %H:%M} UTC"
    return f"Login: {one.login} · {until}" if one.has_password else f"Invited, no password yet · {until}"


def _add() -> None:
    _make_link(st.session_state["account_address"].strip())


def _revoke_link(address: str) -> None:
    with keep_said(PLACE, f"The login link of {address} no longer works."):
        service.get_acting_researcher().revoke_account_link(address)


def _make_link(address: str) -> None:
    with keep_said(PLACE, LINK_MADE.format(account=address)):
        keep_link(PLACE, service.get_acting_researcher().make_account_link(address))


def _end_login(address: str) -> None:
    with keep_said(PLACE, f"{address} can no longer log in with a password."):
        service.get_acting_researcher().remove_account(address)
