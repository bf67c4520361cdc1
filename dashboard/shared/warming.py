"""Import the libraries of the Results page while the first page is being read.

Otherwise the first visitor of Results would wait half a second to a second. A server that only participants use never
imports them. The thread imports libraries only, because two threads that import modules of one circle can meet
half-initialised ones; the thread of the first page imports our own modules once that page is drawn.
"""

from __future__ import annotations

import functools
import importlib
import threading

LIBRARIES = ("scipy.stats", "statsmodels.stats.proportion", "glmm", "plotly.graph_objects", "pandas.io.formats.style")


@functools.cache
def begin() -> threading.Thread:
    """Start the importing thread, once per process."""
    thread = threading.Thread(target=_import_libraries, name="warming", daemon=True)
    thread.start()
    return thread


@functools.cache
def finish() -> None:
    """Import the Results page, at the end of a page's script, when the whole page has been sent."""
    importlib.import_module("dashboard.results.page")


def _import_libraries() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
