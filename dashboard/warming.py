"""Libraries of the pages of numbers, imported while somebody reads the first page that was opened.

Half a second to a second of processor time that the first visitor of the results would wait for. A server that only
participants use never spends it. Libraries only, because two threads that import modules of one circle can meet
half-made ones.
"""

from __future__ import annotations

import functools
import importlib
import threading

LIBRARIES = ("scipy.stats", "statsmodels.stats.proportion", "glmm", "plotly.graph_objects", "pandas.io.formats.style")


@functools.cache
def begin() -> threading.Thread:
    """Begin, once in a process; the thread that imports."""
    thread = threading.Thread(target=_imported, name="warming", daemon=True)
    thread.start()
    return thread


def _imported() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
