"""Libraries of the pages of numbers, imported while somebody reads the first page that was opened.

Half a second to a second of processor time that the first visitor of the results would wait for. A server that only
participants use never spends it. The thread imports libraries only, because two threads that import modules of
one circle can meet half-made ones; our own modules of that page are imported by the thread of the first page, once that
is drawn.
"""

from __future__ import annotations

import functools
import importlib
import threading

LIBRARIES = ("scipy.stats", "statsmodels.stats.proportion", "glmm", "plotly.graph_objects", "pandas.io.formats.style")


@functools.cache
def begin() -> threading.Thread:
    """Begin, once in a process; the thread that imports."""
    thread = threading.Thread(target=_import_libraries, name="warming", daemon=True)
    thread.start()
    return thread


@functools.cache
def finish() -> None:
    """Import the page of results: for the end of a page's script, when all of it is on its way to the reader."""
    importlib.import_module("dashboard.results.page")


def _import_libraries() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
