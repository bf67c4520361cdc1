"""Output of the command line: results, errors and progress bars."""

from __future__ import annotations

import sys
import unicodedata

import typer
from tqdm import tqdm

from core.names import upper_first
from dashboard.shared.bars import ProgressBars

CONTROL_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories of what a terminal obeys, or what turns text round, instead of showing it."""


def say(text: str, *, error: bool = False) -> None:
    """Print lines to stdout, or errors to stderr, so that no text of others can control the terminal."""
    typer.echo("\n".join(escape_controls(line) for line in text.split("\n")), err=error)


def escape_controls(text: str) -> str:
    """Escape what a terminal would obey in a line: ``\\x1b``, ``\\n``, ``\\u202e``."""
    escaped = (
        c.encode("unicode_escape").decode() if unicodedata.category(c) in CONTROL_CATEGORIES else c for c in text
    )
    return "".join(escaped)


class Bars(ProgressBars):
    """Progress on stderr: a bar for each stage in a terminal, a line for each stage elsewhere."""

    def __init__(self) -> None:
        super().__init__(lambda total: tqdm(total=total, smoothing=0.1, dynamic_ncols=True))
        self._stage = ""

    def __call__(self, done: int, total: int, what: str) -> None:
        if sys.stderr.isatty():
            super().__call__(done, total, escape_controls(what))
        elif what != self._stage:
            self._stage = what
            say(f"{upper_first(what)}: {total:,}", error=True)
