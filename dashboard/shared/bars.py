"""Progress bars of a program, one after the other: in a terminal or in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self


class ProgressBars:
    """Progress, a new bar wherever the total changes or the count starts again; call it as a `core.types.Progress`.

    Parameters
    ----------
    make_bar
        Makes a bar of tqdm for a total.
    """

    def __init__(self, make_bar: Callable[[int], Any]) -> None:
        self._make_bar = make_bar
        self._bar: Any = None

    def __call__(self, done: int, total: int, what: str) -> None:
        """Move the bar."""
        if self._bar is None or self._bar.total != total or done < self._bar.n:
            self._close()
            self._bar = self._make_bar(total)
        self._bar.set_description(what, refresh=False)
        self._bar.update(done - self._bar.n)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
