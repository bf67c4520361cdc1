"""Tables that print themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from dashboard.notebook.display import escape


@dataclass(frozen=True)
class PrintedTable:
    """A table that prints itself with its notes.

    Attributes
    ----------
    table
        The numbers.
    lines
        The table and the notes as text.
    """

    table: pd.DataFrame = field(repr=False)
    lines: Sequence[str]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
