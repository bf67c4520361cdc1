"""Tables that users bring: CSV as spreadsheets write it in any country, and Parquet. A cell of a CSV is text."""

from __future__ import annotations

import io
import re
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pandas as pd

from core.errors import ForetellError
from core.text import decode_text

MISSING = ("NA", "NaN", "nan")
"""Texts of a cell that mean a missing value, besides the empty one."""
Comma = Literal["decimal", "thousands"]
"""What a comma in a number separates."""
LONGEST_HEAD = 2**16
"""Characters among which the first line ends."""
_QUOTED = re.compile(r'"[^"]*"')
_WITH_COMMA = re.compile(r"(?=\D*\d)\s*[+-]?[\d.,\s]*,[\d.,\s]*([eE][+-]?\d+)?\s*")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?(\d*,\d+|\d+,)([eE][+-]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")
"""What may be a decimal comma in one country and a separator of thousands in another."""
_GROUPED = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?\s*")


def read_table(path: Path) -> pd.DataFrame:
    """Read the columns of a CSV file as text (`parse_table`).

    Raises
    ------
    ForetellError
        There is no such file, or it is no table.
    """
    return parse_table(_read_bytes(path), path.name)


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file.

    Raises
    ------
    ForetellError
        The file is missing or no Parquet file.
    """
    try:
        return pd.read_parquet(io.BytesIO(_read_bytes(path)))
    except (OSError, ValueError):
        raise ForetellError(f"{path.name} is not a Parquet file. Export it again.") from None


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ForetellError(f"No table at {path} ({error.strerror}). Check the path.") from None


def parse_table(content: bytes, name: str) -> pd.DataFrame:
    """Return the columns of a CSV as text, so that a participant ``007`` keeps their name.

    Commas, semicolons or tabs, UTF-8 or UTF-16: spreadsheets write all of them. An empty cell is "".

    Raises
    ------
    ForetellError
        The content is empty or no such file, or a row has more cells than the header has names.
    """
    try:
        text = decode_text(content)
        head = _QUOTED.sub("", text[:LONGEST_HEAD]).lstrip("\n").partition("\n")[0]
        separator = max(",;\t", key=head.count)
        frame = pd.read_csv(io.StringIO(text), sep=separator, dtype="str", na_filter=False)
    except pd.errors.EmptyDataError:
        raise ForetellError(f"{name} is empty. Export it again.") from None
    except UnicodeDecodeError:
        raise ForetellError(f"{name} is not a CSV file in UTF-8 or UTF-16. Save it as one.") from None
    except pd.errors.ParserError as error:
        wide = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if wide is None:
            raise ForetellError(f"{name} is not a CSV file in UTF-8 or UTF-16. Save it as one.") from None
        raise _refuse_wide_rows(name, f"line {wide[2]} has {wide[3]} cells, but the header {wide[1]}") from None
    if not isinstance(frame.index, pd.RangeIndex):  # pandas takes what is too much for the names of rows
        raise _refuse_wide_rows(name, "its rows have more cells than its header")
    return frame


def _refuse_wide_rows(name: str, problem: str) -> ForetellError:
    return ForetellError(
        f"{name} is not a table: {problem}. Numbers with a decimal comma need semicolons between the columns, or "
        "quotation marks."
    )


def mark_missing(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """Make empty cells and the texts of `MISSING` missing values; return these texts' number by column as well."""
    counts = frame.isin(MISSING).sum()
    words = {str(name): int(count) for name, count in counts.items() if count}
    return frame.mask(frame.isin(["", *MISSING])), words


def parse_numbers(column: pd.Series[str], comma: Comma | None = None) -> pd.Series[float] | None:
    """Return a column of text as numbers, also with commas; None where it holds anything else.

    What commas separate is ``comma``, or else what the column itself tells.
    """
    with suppress(ValueError, TypeError):
        return pd.to_numeric(column)
    if not is_numeric(column):
        return None
    commas, others = _split_by_comma(column)
    if comma == "thousands":
        is_grouped = commas.str.fullmatch(_GROUPED).all()
        return pd.to_numeric(column.str.replace(",", "")) if is_grouped else None
    is_decimal = commas.str.fullmatch(_DECIMAL_COMMA).all()
    is_clear = comma == "decimal" or not commas.str.fullmatch(_THOUSANDS).all()
    if not is_decimal or not is_clear or others.str.contains(".", regex=False).any():
        return None
    return pd.to_numeric(column.str.replace(",", "."))


def is_numeric(column: pd.Series[str]) -> bool:
    """Whether a column of text holds numbers, also those whose comma may separate decimals or thousands."""
    commas, others = _split_by_comma(column)
    return bool(commas.str.fullmatch(_WITH_COMMA).all() and pd.to_numeric(others, errors="coerce").notna().all())


def _split_by_comma(column: pd.Series[str]) -> tuple[pd.Series[str], pd.Series[str]]:
    values = column.dropna().astype("str")
    has_comma = values.str.contains(",", regex=False)
    return values[has_comma], values[~has_comma]
