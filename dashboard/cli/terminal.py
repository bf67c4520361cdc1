"""Output of the command line: results, errors and progress bars."""

from __future__ import annotations

import unicodedata
from types import TracebackType

import typer
from tqdm import tqdm

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


class Bars:
    """Progress on stderr, one bar after the other; call it as a `core.types.Progress`."""

    def __init__(self) -> None:
        self._bar: tqdm | None = None

    def __call__(self, done: int, total: int, what: str) -> None:
        if self._bar is None or self._bar.total != total or done < self._bar.n:
            self._close()
            self._bar = tqdm(total=total, smoothing=0.1, dynamic_ncols=True)
        self._bar.set_description(escape_controls(what), refresh=False)
        self._bar.update(done - self._bar.n)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> Bars:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
