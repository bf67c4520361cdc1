"""Typed rows against the tables of the database."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from study.store import Store
from study.store.rows import PlannedRow, ResponseRow, SessionRow, SlotRow, VersionRow

ROWS = {
    "study_version": VersionRow,
    "session": SessionRow,
    "allocation_slot": SlotRow,
    "trial_plan": PlannedRow,
    "response": ResponseRow,
}

KINDS: dict[type, str] = {str: "TEXT", int: "INTEGER", float: "REAL"}


@pytest.mark.parametrize("table", ROWS)
def test_a_typed_row_is_what_the_database_has(table: str, tmp_path: Path) -> None:
    """Catches a column that a migration adds and programs do not know, and one that may be empty and is not said to be.

    Oracle: the schema of a new database, as SQLite describes it.
    """
    said = {name: _describe(kind) for name, kind in get_type_hints(ROWS[table]).items() if name != "screen_json"}
    with closing(Store(f"sqlite:///{tmp_path / 'test.db'}")) as store:
        there = store.read(lambda db: db.exec_driver_sql(f"PRAGMA table_info({table})").all())
    assert said == {column[1]: (column[2], not column[3] and not column[5]) for column in there}


def _describe(kind: Any) -> tuple[str, bool]:
    """The SQL type of an annotation, and whether it may be None."""
    values = set(_flatten(kind))
    (plain,) = values - {type(None)}
    return KINDS[plain], type(None) in values


def _flatten(kind: Any) -> Iterator[type]:
    if get_origin(kind) is Literal:
        yield from map(type, get_args(kind))
    elif get_args(kind):
        for part in get_args(kind):
            yield from _flatten(part)
    else:
        yield kind
