"""``password``: who may see the researcher's pages."""

from __future__ import annotations

import typer

from dashboard.terminal import say


def password() -> None:
    """Set the password of the researcher's pages; whoever was logged in has to log in again.

    Without one the pages answer this machine only. Participants never need it.

    Example: python foretell.py password
    """
    from study.service import Service
    from study.workspace import home

    chosen = typer.prompt("New password", hide_input=True, confirmation_prompt="Once more")
    with Service(home()) as service:
        service.set_password(chosen)
    say("The password is set.")


VERBS = [password]
