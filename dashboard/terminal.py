"""What the command line shows while it works."""

from __future__ import annotations

from types import TracebackType

import typer
from tqdm import tqdm


def say(text: str) -> None:
    """A line of result on stdout."""
    typer.echo(text)


class Bars:
    """Progress on stderr, one bar after the other; call it as a `core.types.Progress`."""

    def __init__(self) -> None:
        self._bar: tqdm | None = None

    def __call__(self, done: int, total: int, what: str) -> None:
        if self._bar is None or self._bar.total != total or done < self._bar.n:
            self._close()
            self._bar = tqdm(total=total, smoothing=0.1, dynamic_ncols=True)
        self._bar.set_description(what, refresh=False)
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
