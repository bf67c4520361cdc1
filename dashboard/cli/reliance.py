"""``reliance``: measures of reliance on the AI, from decisions in two steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboard.cli.options import parse_pairs
from dashboard.cli.terminal import say


def reliance(
    decisions: Annotated[Path, typer.Argument(help="A CSV file, one row per decision, or an export of Foretell.")],
    column: Annotated[list[str] | None, typer.Option(help="Rename a column: ours=theirs. Repeatable.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the table to this CSV file.")] = None,
) -> None:
    """Measure reliance on the AI by condition, with 95% intervals over participants.

    Accuracy of first and final responses and of the AI, switches, RAIR, RSR, over- and under-reliance. The columns
    are participant, condition, first, ai, final and truth; the last four are classes. Rows without one of them are left
    out and counted.

    Example: python foretell.py reliance decisions.csv --column first=own_answer --column ai=advice
    """
    from study.analysis.exploratory.reliance import describe, tabulate
    from study.analysis.responses.decisions import read_decisions
    from study.workspace.files import shared_files
    from study.workspace.spreadsheets import csv_text

    rows, dropped = read_decisions(decisions, parse_pairs(column or [], "--column", "ours=theirs"))
    table = tabulate(rows)
    say(table.to_string(index=False, float_format=lambda value: f"{value:.3f}"))
    say(describe(table))
    if dropped:
        say(f"{dropped} rows were left out because a value is missing.")
    if out is not None:
        with shared_files():
            out.write_text(csv_text(table), encoding="utf-8", newline="")
        say(str(out))
