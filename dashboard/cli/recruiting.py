"""``links``, ``access``, ``withdraw``, ``subject-access``, ``bonus``, ``reconcile``: participants before and after."""

from __future__ import annotations

import json
import re
import secrets
from pathlib import Path
from typing import Annotated, cast

import typer

from dashboard.cli.terminal import escape_controls, say

StudyName = Annotated[str, typer.Argument(help="The study's name.")]


def links(
    study: StudyName,
    ids: Annotated[Path | None, typer.Argument(help="A text file with one id per line.")] = None,
    count: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Generate this many random ids instead.")
    ] = None,
    address: Annotated[str, typer.Option(help="Address of the server.")] = "http://127.0.0.1:8501",
    out: Annotated[Path, typer.Option(help="The CSV file to write: pid,link.")] = Path("links.csv"),
    sittings: Annotated[
        bool, typer.Option("--sittings", help="Instead, of participants who may start their next sitting.")
    ] = False,
) -> None:
    """Sign a personal link for each id of a list. A link lets its holder take part once, and resume.

    With --sittings, a link to the next sitting for each participant between two sittings, by their id at the
    recruitment service, with the times (UTC) at which it opens and closes.

    Example: python foretell.py links demo ids.txt --address https://study.example.org --out links.csv
    """
    import pandas as pd
    from pydantic import ValidationError

    from core.errors import ForetellError
    from study.collection.export import write_csv
    from study.service import Service
    from study.workspace.workspace import home

    if sittings:
        return _write_sitting_links(study, ids is not None or count is not None, address, out)
    if (ids is None) == (count is None):
        raise ForetellError("Name either a file of ids or --count. Each link needs an id.")
    people = read_ids(ids) if ids is not None else [secrets.token_hex(8) for _ in range(count or 0)]
    with Service(home()) as service:
        try:
            paths = service.researcher.personal_links(study, people)
        except ValidationError:
            raise ForetellError(
                "An id has at most 200 letters, digits and _ . @ -. Change the ids that do not fit."
            ) from None
    write_csv(pd.DataFrame({"pid": people, "link": [address.rstrip("/") + path for path in paths]}), out, verbatim=True)
    out.chmod(0o600)
    say(f"{out}: {len(people)} personal links")


def _write_sitting_links(study: str, names_ids: bool, address: str, out: Path) -> None:
    """Write the links of participants who may start their next sitting."""
    from core.errors import ForetellError
    from study.collection.export import write_csv
    from study.service import Service
    from study.workspace.workspace import home

    if names_ids:
        raise ForetellError(
            "--sittings writes the links of all participants who may return. Leave out ids and --count."
        )
    with Service(home()) as service:
        table = service.researcher.list_sitting_links(study)
    write_csv(table.assign(link=address.rstrip("/") + table["link"].astype(str)), out, verbatim=True)
    out.chmod(0o600)
    say(f"{out}: {len(table)} links to the next sitting")


def read_ids(file: Path) -> list[str]:
    """Read the ids of a text file, one per line, without a header "pid" and the further columns of a table."""
    from core.errors import ForetellError
    from core.text import read_lines

    firsts = [re.split("[,;\t]", line)[0].strip(' "') for line in read_lines(file, "one id per line")]
    ids = list(dict.fromkeys(first for first in firsts if first and first != "pid"))
    if not ids:
        raise ForetellError(f"{file} has no id. Write one on each line.")
    return ids


def access(
    study: StudyName,
    mode: Annotated[str, typer.Argument(help="open, list (ids on a closed list) or personal (signed links).")],
    ids: Annotated[Path | None, typer.Option(help="A text file with one id per line, for the closed list.")] = None,
) -> None:
    """Set who may start an open study; participants who have started are not affected.

    Example: python foretell.py access demo list --ids ids.txt
    """
    from study.collection.guests import AccessMode
    from study.service import Service
    from study.workspace.workspace import home

    with Service(home()) as service:
        listed = service.researcher.set_access(study, cast(AccessMode, mode), [] if ids is None else read_ids(ids))
    say(f"{study}: {mode}" + (f", {listed} ids on the list" if mode == "list" else ""))


def withdraw(code: Annotated[str, typer.Argument(help="The participant's private code.")]) -> None:
    """Erase all responses of the participant with a private code; a tombstone remains for verification.

    Example: python foretell.py withdraw K7QHTM2XWPAC
    """
    from study.service import Service
    from study.workspace.workspace import home

    with Service(home()) as service:
        service.participant.withdraw(code)
    say("Erased.")


def subject_access(
    study: StudyName,
    participant: Annotated[str, typer.Argument(help="Their private code, the id they came with, or their name (P…).")],
    request: Annotated[str, typer.Option(help="How and when they asked; the audit trail records it.")],
    out: Annotated[Path, typer.Option(help="The JSON file to write.")] = Path("participant.json"),
) -> None:
    """Write everything held about one participant, table by table, as a withdrawal would erase it.

    The file can identify the participant: hand it to them alone.

    Example: python foretell.py subject-access demo K7QHTM2XWPAC --request "e-mail of 3 May" --out participant.json
    """
    from study.service import Service
    from study.workspace.files import write_whole
    from study.workspace.workspace import home

    with Service(home()) as service:
        held = service.researcher.collect_subject_data(study, participant, request)
    write_whole(out, json.dumps(held, indent=1, ensure_ascii=False).encode())
    out.chmod(0o600)
    say(f"{out}: {sum(len(rows) for rows in held['tables'].values())} rows about {held['participant']}")


def bonus(
    study: StudyName,
    out: Annotated[Path, typer.Option(help="The CSV file to write: pid,amount, no header.")] = Path("bonus.csv"),
    batch: Annotated[int | None, typer.Option(help="Write an earlier batch again, if its file was lost.")] = None,
) -> None:
    """Write the bonuses not paid yet, as Prolific's bulk-bonus file. No participant is in two batches.

    Example: python foretell.py bonus demo --out bonus.csv
    """
    from study.collection.export import write_csv
    from study.service import Service
    from study.workspace.files import shared_files
    from study.workspace.workspace import home

    with Service(home()) as service:
        made = service.researcher.bonus(study, batch)
    if made.number is None:
        say("No bonus is waiting.")
    else:
        with shared_files():
            write_csv(made.rows, out, header=False, verbatim=True)
        say(f"{out}: batch {made.number}, {len(made.rows)} participants, {made.rows['amount'].astype(float).sum():.2f}")
    if made.without_id:
        say(f"{made.without_id} participants have a bonus but no recruiter's id (or no longer)")


def reconcile(
    study: StudyName,
    statuses: Annotated[Path, typer.Argument(help="The recruiter's list (CSV of Prolific or MTurk).")],
) -> None:
    """Compare the recruiter's list of participants with the responses here, and report differences.

    The list needs the columns Participant id and Status, as Prolific's has, or WorkerId and AssignmentStatus, as
    MTurk's has. Quota places of participants who returned or timed out are reallocated. Of several rows of a
    participant, one that was handed in counts, and they are reported. Exit code 1 if anything differs.

    Example: python foretell.py reconcile demo prolific_export.csv
    """
    from study.service import Service
    from study.workspace.tables import read_table
    from study.workspace.workspace import home

    listed = read_table(statuses)
    with Service(home()) as service:
        entries = service.researcher.reconcile(study, listed)
    for row in entries.itertuples(index=False):
        say(
            f"{escape_controls(row.person)}: {escape_controls(row.recruiter) or '-'} there, "
            f"{row.here or '-'} here: {row.matter}"
        )
    say(f"{len(listed)} rows in the list, {len(entries)} participants differ")
    if len(entries):
        raise typer.Exit(1)
