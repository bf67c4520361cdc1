"""``importance``: which heatmap methods agree with what participants marked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.errors import ForetellError
from dashboard.cli.analysis import newest_version
from dashboard.cli.terminal import Bars, say

if TYPE_CHECKING:
    import pandas as pd

    from study.building.reopening import ReopenedStudy


def importance(
    study: Annotated[str, typer.Argument(help="The name of a study of the tasks 'localise' or 'highlight'.")],
    method: Annotated[
        str | None, typer.Option(help="Methods, with commas; explain --list names all. Default: the quick ones.")
    ] = None,
    simulated: Annotated[bool, typer.Option("--simulated", help="Use the simulated participants.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the table to this CSV file.")] = None,
) -> None:
    """Compare heatmap methods with participants' marks: the rank correlation over the image, and that by chance.

    Heatmaps are kept: after an interruption the same command continues.

    Example: python foretell.py importance highlight --method gradient,grad_cam --out agreement.csv
    """
    from inquiry.files.chosen_methods import open_methods
    from inquiry.participants.marked import choose_quick, compare_methods
    from study.workspace.files import shared_files
    from study.workspace.spreadsheets import csv_text

    slow: list[str] = []
    with Bars() as progress:
        frame, opened = _open_study(study, progress, simulated=simulated)
        if method is None:
            names, slow = choose_quick(opened.sources.classifier)
        else:
            names = method.split(",")
        table = compare_methods(opened, frame, open_methods(names, Path.cwd()), progress)
    _say_agreement(table, slow)
    if out is not None:
        with shared_files():
            out.write_text(csv_text(table), encoding="utf-8", newline="")
        say(str(out))


def _open_study(name: str, progress: Bars, *, simulated: bool) -> tuple[pd.DataFrame, ReopenedStudy]:
    """Return the responses to the newest version of a study, and that version opened again."""
    from study.building.reopening import reopen
    from study.bundle import Bundle
    from study.service import Service
    from study.workspace.workspace import home

    with Service(home()) as service:
        frame = newest_version(service.researcher.responses(name, ("sim",) if simulated else ("live",)))
        folders = {version.study_hash: version.folder for version in service.researcher.studies()}
    if frame.empty:
        whose = "simulated participants" if simulated else "participants"
        raise ForetellError(f"The study {name!r} has no responses of {whose} yet.")
    return frame, reopen(Bundle(folders[str(frame["study_hash"].iloc[0])]), home() / "cache", progress)


def _say_agreement(table: pd.DataFrame, slow: list[str]) -> None:
    """Print the table, why methods have no number, and which were left out."""
    from core.names import format_name

    shown = table[table["rank_correlation"].notna()].drop(columns="note")
    say(shown.assign(method=shown["method"].map(format_name)).to_string(index=False, float_format="{:.3f}".format))
    noted = table[table["note"] != ""].drop_duplicates("method")
    for name, note in zip(noted["method"], noted["note"], strict=True):
        say(f"{format_name(name)}: {note}")
    if slow:
        say(f"Not compared, because a heatmap takes long; name them with --method: {','.join(slow)}.")
