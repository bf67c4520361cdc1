"""A progress bar for the duration of the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from core.names import upper_first
from core.types import Progress


@contextmanager
def bar(first: str) -> Iterator[Progress]:
    """Draw a `core.types.Progress` on the page.

    A click elsewhere cancels the work: Streamlit raises out of the next report.
    """
    place = st.empty()
    place.progress(0.0, f"{first} …")

    def report(done: int, total: int, what: str) -> None:
        place.progress(min(done / max(total, 1), 1.0), f"{upper_first(what)}: {done:,} of {total:,}")

    try:
        yield report
    finally:
        place.empty()
