"""``withdraw``, ``bonus``, ``reconcile``: what participants and their recruiter are owed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboard.terminal import say, shown

StudyName = Annotated[str, typer.Argument(help="The study's name.")]


def withdraw(code: Annotated[str, typer.Argument(help="The participant's private code.")]) -> None:
    """Erase everything the holder of a private code answered; a tombstone stays, so that the rest can be verified.

    Example: python foretell.py withdraw K7QHTM2XWPAC
    """
    from study.service import Service
    from study.workspace import home

    with Service(home()) as service:
        service.withdraw(code)
    say("Erased.")


def bonus(
    study: StudyName,
    out: Annotated[Path, typer.Option(help="The CSV file to write: pid,amount, no header.")] = Path("bonus.csv"),
    batch: Annotated[int | None, typer.Option(help="An earlier batch again, in case its file was lost.")] = None,
) -> None:
    """The bonuses not handed over yet, as Prolific's bulk-bonus file. Nobody is in two batches.

    Example: python foretell.py bonus demo --out bonus.csv
    """
    from study.collection.export import write_csv
    from study.service import Service
    from study.workspace import home

    with Service(home()) as service:
        made = service.bonus(study, batch)
    if made.number is None:
        say("No bonus is waiting.")
    else:
        write_csv(made.rows, out, header=False)
        say(f"{out}: batch {made.number}, {len(made.rows)} people, {made.rows['amount'].astype(float).sum():.2f}")
    if made.without_id:
        say(f"{made.without_id} people have a bonus but no recruiter's id (any more)")


def reconcile(
    study: StudyName,
    statuses: Annotated[Path, typer.Argument(help="The recruiter's list (CSV with Participant id and Status).")],
) -> None:
    """Compare the recruiter's list of people with the answers here, and say what does not agree.

    The places of unfinished people who returned or timed out are given to others. Exit code 1 if anything differs.

    Example: python foretell.py reconcile demo prolific_export.csv
    """
    import pandas as pd

    from core.errors import ForetellError
    from study.service import Service
    from study.workspace import home

    try:
        listed = pd.read_csv(statuses, dtype=str)
    except (OSError, ValueError) as error:
        raise ForetellError(
            f"{statuses} cannot be read as a table ({error}). Export it from the recruiter again."
        ) from None
    with Service(home()) as service:
        found = service.reconcile(study, listed)
    for row in found.itertuples(index=False):
        say(f"{shown(row.person)}: {shown(row.recruiter) or '-'} there, {row.here or '-'} here: {row.matter}")
    say(f"{len(listed)} people in the list, {len(found)} differ")
    if len(found):
        raise typer.Exit(1)


VERBS = [withdraw, bonus, reconcile]
