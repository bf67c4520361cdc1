"""What the command line shows while it works."""

from __future__ import annotations

from types import TracebackType

import typer
from tqdm import tqdm


def say(text: str) -> None:
    """A line of result on stdout."""
    typer.echo(text)


class Bars:
    """Progress bars on stderr, one for each kind of work; call it as a `core.types.Progress`."""

    def __init__(self) -> None:
        self._bars: dict[str, tqdm] = {}

    def __call__(self, done: int, total: int, what: str) -> None:
        if what not in self._bars:
            self._bars[what] = tqdm(total=total, desc=what, leave=True, smoothing=0.1)
        bar = self._bars[what]
        bar.update(done - bar.n)

    def __enter__(self) -> Bars:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for bar in self._bars.values():
            bar.close()
