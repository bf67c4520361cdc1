"""Decisions in two steps: a first response, the AI's label and a final response, from a file or from responses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from core.errors import ForetellError
from study.workspace.tables import mark_missing, read_parquet, read_table

NEEDED = ("participant", "condition", "first", "ai", "final", "truth")
"""Of a table of decisions: who, in which condition, and four classes."""
_OF_RESPONSES = {"first_choice": "first", "category": "ai", "choice": "final"}
"""Columns of exported responses, and what they are of a decision."""


def read_decisions(path: Path, columns: Mapping[str, str] | None = None) -> tuple[pd.DataFrame, int]:
    """Read decisions from a CSV or Parquet file, and count the rows left out because a value is missing.

    Parameters
    ----------
    columns
        The file's name of each of our columns that has another one. A file exported by Foretell needs none.

    Raises
    ------
    ForetellError
        The file cannot be read, lacks a column, or has no complete row.
    """
    frame = read_parquet(path) if path.suffix == ".parquet" else mark_missing(read_table(path))[0]
    named = dict(columns or {})
    unknown = [ours for ours in named if ours not in NEEDED]
    if unknown:
        raise ForetellError(f"Column {unknown[0]!r} is unknown: use one of {', '.join(NEEDED)}.")
    own = {ours: theirs for theirs, ours in _OF_RESPONSES.items()} if "first_choice" in frame else {}
    sources = {ours: named.get(ours, own.get(ours, ours)) for ours in NEEDED}
    for ours, theirs in sources.items():
        if theirs not in frame:
            known = ", ".join(map(str, frame.columns))
            raise ForetellError(
                f"{path.name} has no column {theirs!r}. Name yours with --column {ours}=NAME. It has: {known}."
            )
    every = pd.DataFrame({ours: frame[theirs] for ours, theirs in sources.items()})
    complete = every.dropna().astype(str)
    if complete.empty:
        raise ForetellError(f"{path.name} has no row with all of {', '.join(sources.values())}: fill these columns.")
    return complete.reset_index(drop=True), len(every) - len(complete)


def decisions_of(frame: pd.DataFrame, *, is_one_step: bool = False) -> pd.DataFrame | None:
    """Return the decisions in prepared responses; None where they have no first responses or no true classes.

    Parameters
    ----------
    is_one_step
        Whether participants saw the AI's label at once and named a class: the decisions then have no ``first``.
    """
    needed = [one for one in NEEDED if one != "first"] if is_one_step else list(NEEDED)
    renamed = frame.rename(columns=_OF_RESPONSES)
    if not {*needed} <= {*renamed.columns}:
        return None
    rows = renamed[needed].dropna()
    return rows.astype(str) if len(rows) else None
