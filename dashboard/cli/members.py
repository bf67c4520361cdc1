"""``members``, ``account``: the roles of researchers in a study, and their logins."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from dashboard.cli.terminal import escape_controls, say

Address = Annotated[str, typer.Option(help="Address of the server.")]
LOCAL = "http://127.0.0.1:8501"


def members(
    study: Annotated[str, typer.Argument(help="The study's name.")],
    add: Annotated[str | None, typer.Option(help="E-mail address to add, or to give another role.")] = None,
    role: Annotated[str, typer.Option(help="owner, editor, viewer, rater or manager (of participants).")] = "viewer",
    remove: Annotated[str | None, typer.Option(help="E-mail address to remove.")] = None,
) -> None:
    """List the members of a study, after adding or removing one. The first member must be an owner.

    Example: python foretell.py members demo --add ada@example.org --role owner
    """
    from study.collection.access.permissions import Role
    from study.service import Service
    from study.workspace.workspace import home

    with Service(home()) as service:
        done = "" if add is None else service.researcher.set_member(study, add, cast(Role, role))
        if done:
            say(escape_controls(done))
        if remove is not None:
            service.researcher.remove_member(study, remove)
        for one in service.researcher.list_members(study):
            say(f"{escape_controls(one.account)}: {one.role}, login: {escape_controls(one.login)}")


def account(
    email: Annotated[str | None, typer.Argument(help="E-mail address; without it, all accounts are listed.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="End their password, links and logins instead.")] = False,
    address: Address = LOCAL,
) -> None:
    """Print a link with which a researcher chooses a new password, once, within 7 days, or list all accounts.

    Roles stay as they are.

    Example: python foretell.py account ada@example.org --address https://study.example.org
    """
    from study.service import Service
    from study.workspace.workspace import home

    with Service(home()) as service:
        if email is None:
            for one in service.researcher.list_accounts():
                roles = ", ".join(f"{role} of {study}" for study, role in one.roles.items()) or "no role"
                link = "" if one.link_until is None else f", link until {one.link_until:%Y-%m-%d %H:%M} UTC"
                said = f"{escape_controls(one.address)}: {escape_controls(roles)}, login: {escape_controls(one.login)}"
                say(said + link)
        elif remove:
            service.access.remove_account(email)
            say(f"{escape_controls(email)} can no longer log in with a password.")
        else:
            say(address.rstrip("/") + service.access.make_account_link(email))
