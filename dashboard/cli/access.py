"""``password``, ``login``, ``backup``, ``restore``: access to the researcher's pages, and backups."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboard.cli.study import MOST_FAULTS
from dashboard.cli.terminal import say


def password() -> None:
    """Set the password of the researcher's pages; this ends every login and login link.

    Without a password the pages open only by a login link. Participants never need it.

    Example: python foretell.py password
    """
    from study.service import Service
    from study.workspace.workspace import home

    chosen = typer.prompt("New password", hide_input=True, confirmation_prompt="Repeat the password")
    with Service(home()) as service:
        service.access.set_password(chosen)
    say("The password is set.")


def login(
    address: Annotated[str, typer.Option(help="Address of the server.")] = "http://127.0.0.1:8501",
) -> None:
    """Print a link that logs in to the researcher's pages, once, within 30 days; it ends the link before it.

    Example: python foretell.py login --address https://study.example.org
    """
    from study.service import Service
    from study.workspace.workspace import home

    with Service(home()) as service:
        say(address.rstrip("/") + service.access.login_link())


def backup(
    out: Annotated[Path, typer.Argument(help="The folder to create.")],
    at_least: Annotated[
        int, typer.Option(min=0, help="Exit code 1 if fewer responses than this were ever stored.")
    ] = 0,
    newest_within: Annotated[
        float | None, typer.Option(min=0, help="Exit code 1 if the last response is older than this many hours.")
    ] = None,
) -> None:
    """Save responses, ids, the key, study files and opened bundles to one folder, also during collection.

    The folder can identify participants: protect it like the workspace. Exit code 1 if something is damaged, or if
    there are fewer or older responses than you expect; the backup is written all the same.

    Example: python foretell.py backup backups/monday --newest-within 24
    """
    import time

    from study.collection.backup import backup as run
    from study.service import Service
    from study.workspace.workspace import home

    with Service(home()) as service:
        made = run(service.researcher, out)
    ends = made.ends
    say(f"{out}: {made.studies} version(s) of studies, {ends.response:,} responses, the last: {ends.last_response}")
    faults = [f"Fault: {fault}" for fault in made.faults[:MOST_FAULTS]]
    if ends.response < at_least:
        faults.append(f"Only {ends.response:,} responses were ever stored in {home()}, not {at_least:,}.")
    if newest_within is not None and time.time_ns() - ends.response_at > newest_within * 3600e9:
        faults.append(f"The last response in {home()} is older than {newest_within:g} hours.")
    for fault in faults:
        say(fault)
    if faults:
        raise typer.Exit(1)


def restore(folder: Annotated[Path, typer.Argument(help="A folder written by backup.")]) -> None:
    """Load a backup into an empty workspace and database, and check it row by row. Exit code 1 on a fault.

    Example: python foretell.py restore backups/monday
    """
    from study.collection.backup import restore as run
    from study.workspace.workspace import home

    faults = run(folder, home())
    for fault in faults[:MOST_FAULTS]:
        say(f"Fault: {fault}")
    if faults:
        raise typer.Exit(1)
    say(f"{home()}: responses, plans and quotas match the backup.")
