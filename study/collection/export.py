"""The responses as a long table (CSV, Parquet or a Psych-DS data set), with a description of every column."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from study.collection.researcher import Researcher
from study.collection.tables import frames, participants
from study.collection.tables import published as theirs
from study.collection.tables.columns import describe
from study.store.rows import Mode
from study.workspace.spreadsheets import csv_text

DICTIONARY = describe(frames.COLUMNS)
PARTICIPANTS = describe(participants.COLUMNS)


@dataclass(frozen=True)
class DescribedTable:
    """A table with the meaning of its columns; ``name`` is ``responses`` or ``people``."""

    name: str
    frame: pd.DataFrame
    columns: Mapping[str, Mapping[str, str]]


def tables(
    researcher: Researcher, study: str, modes: Sequence[Mode], *, published: bool = False
) -> tuple[DescribedTable, DescribedTable]:
    """Return the tables of responses and of participants, with Foretell's column names or the published ones."""

    def build_table(name: str, frame: pd.DataFrame, columns: Mapping[str, Mapping[str, str]]) -> DescribedTable:
        if published:
            return DescribedTable(name, theirs.frame(frame), theirs.columns(columns))
        return DescribedTable(name, frame, columns)

    return (
        build_table("responses", researcher.responses(study, modes), DICTIONARY),
        build_table("people", researcher.load_participants(study, modes), PARTICIPANTS),
    )


def export(
    researcher: Researcher, study: str, path: Path, modes: Sequence[Mode] = ("live",), *, published: bool = False
) -> Path:
    """Write the responses to `path`, with the participants (``NAME.people.csv``) and two dictionaries next to it.

    A path that ends with ``.parquet`` makes Parquet files of both. With `published`, columns have the names of
    `study.collection.tables.published`.
    """
    responses, people = tables(researcher, study, modes, published=published)
    path.parent.mkdir(parents=True, exist_ok=True)
    researcher.log_export(study, modes, len(responses.frame))
    write(responses.frame, path)
    write(people.frame, path.with_name(f"{path.stem}.people{path.suffix}"))
    for name, table in (("data-dictionary.json", responses), ("people-dictionary.json", people)):
        text = json.dumps(table.columns, indent=2, ensure_ascii=False) + "\n"
        (path.parent / name).write_text(text, encoding="utf-8")
    return path


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write a table as Parquet if the name ends so, else as CSV."""
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        write_csv(frame, path)


def write_csv(frame: pd.DataFrame, path: Path, *, header: bool = True, verbatim: bool = False) -> None:
    """Write UTF-8 with commas, with a header or without; `csv_text` says what is ``verbatim``."""
    path.write_text(csv_text(frame, header=header, verbatim=verbatim), encoding="utf-8", newline="")
