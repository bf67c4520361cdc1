"""The columns of an exported table, each declared once: name, meaning, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pandas as pd

WHOLE, TEXT = pd.Int64Dtype(), pd.StringDtype(na_value=np.nan)
"""Whole numbers and texts, all of which may be missing."""


class Record(Protocol):
    """The source of a table's row."""

    @property
    def row(self) -> Mapping[str, Any]:
        """The stored row."""


Source = TypeVar("Source", bound=Record)


@dataclass(frozen=True)
class Column(Generic[Source]):
    """One column.

    Attributes
    ----------
    read
        Reads its value; None: the stored row has the same name.
    unit, values
        As in the data dictionary, if any.
    dtype
        Data type of values that may all be missing; None: as pandas infers it.
    """

    name: str
    meaning: str
    read: Callable[[Source], Any] | None = None
    unit: str = ""
    values: str = ""
    dtype: type | pd.Int64Dtype | pd.StringDtype | None = None

    def read_value(self, source: Source) -> Any:
        """Read the value of one row."""
        return source.row[self.name] if self.read is None else self.read(source)


def tabulate(columns: Sequence[Column[Source]], sources: Iterable[Source]) -> pd.DataFrame:
    """Read a table, one row for each source."""
    records = [tuple(column.read_value(source) for column in columns) for source in sources]
    frame = pd.DataFrame.from_records(records, columns=[column.name for column in columns])
    return frame.astype({column.name: column.dtype for column in columns if column.dtype})


def describe(columns: Sequence[Column[Any]]) -> dict[str, dict[str, str]]:
    """Describe the columns by name: meaning, and unit and values if any."""
    parts = ("meaning", "unit", "values")
    return {column.name: {part: text for part in parts if (text := getattr(column, part))} for column in columns}
