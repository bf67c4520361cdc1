"""Files of responses, read as text: CSV as spreadsheets write it, and Parquet."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd

from core.errors import ForetellError

_MISSING = ["", "NA", "NaN", "nan"]


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file.

    Raises
    ------
    ForetellError
        The file is missing or no Parquet file.
    """
    try:
        return pd.read_parquet(io.BytesIO(read_bytes(path)))
    except (OSError, ValueError):
        raise ForetellError(f"{path.name} is not a Parquet file. Export the responses again.") from None


def read_bytes(path: Path) -> bytes:
    """Read a file of responses.

    Raises
    ------
    ForetellError
        There is no such file.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ForetellError(f"No file of responses at {path} ({error.strerror}). Check the path.") from None


def parse(content: bytes, name: str) -> pd.DataFrame:
    """Return the columns of a CSV as text, so that a participant ``007`` keeps their name.

    Commas, semicolons or tabs, UTF-8 or UTF-16: spreadsheets write all of them.

    Raises
    ------
    ForetellError
        The content is empty or no such file.
    """
    try:
        encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        text = content.decode(encoding)
        head = text.partition("\n")[0]
        separator = max(",;\t", key=head.count)
        return pd.read_csv(io.StringIO(text), sep=separator, dtype="str", keep_default_na=False, na_values=_MISSING)
    except pd.errors.EmptyDataError:
        raise ForetellError(f"{name} is empty. Export the responses again.") from None
    except (pd.errors.ParserError, UnicodeDecodeError):
        raise ForetellError(f"{name} is not a CSV file in UTF-8 or UTF-16. Save it as one.") from None
