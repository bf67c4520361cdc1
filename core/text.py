"""Text files that users write, as their editors save them: UTF-8 with or without a byte-order mark, or UTF-16."""

from __future__ import annotations

import codecs
import io
from pathlib import Path

from core.errors import ForetellError

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decode_text(content: bytes, errors: str = "strict") -> str:
    """Decode text, with line feeds at the ends of lines and without a byte-order mark.

    ``errors="replace"`` shows what cannot be decoded, for text to be corrected.

    Raises
    ------
    UnicodeDecodeError
        Neither UTF-8 nor UTF-16 with its byte-order mark.
    """
    encoding = "utf-16" if content.startswith(_UTF_16) else "utf-8-sig"
    if encoding == "utf-8-sig" and errors == "strict" and (place := content.find(b"\0")) >= 0:
        raise UnicodeDecodeError("utf-8", content, place, place + 1, "a null byte, as of UTF-16 without its mark")
    with io.TextIOWrapper(io.BytesIO(content), encoding, errors) as decoded:
        return decoded.read()


def read_text(path: Path) -> str:
    """Read a text file.

    Raises
    ------
    OSError
        The file is missing or may not be read.
    ForetellError
        It is not text in UTF-8 or UTF-16.
    """
    content = path.read_bytes()
    try:
        return decode_text(content)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ForetellError(f"{path} is not text in UTF-8 (line {line}). Save it as UTF-8.") from None


def read_lines(path: Path, content: str) -> list[str]:
    """Return the lines of a text file that are not empty; ``content`` says what it should hold.

    Raises
    ------
    ForetellError
        The file is missing, or not text.
    """
    try:
        lines = read_text(path).splitlines()
    except OSError as error:
        raise ForetellError(
            f"{path} cannot be read ({error.strerror}). Give a UTF-8 text file with {content}."
        ) from None
    return [line.strip() for line in lines if line.strip()]
