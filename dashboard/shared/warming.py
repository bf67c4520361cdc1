"""Import the Results page and its libraries while nobody waits for the server.

Otherwise the first visitor of Results would wait half a second to a second. A server that only participants use never
imports them. The imports begin when the server has been idle: before, they would take their processor time from the
page that has just been opened, and the first heatmap would come a second later. By then no other thread imports
either: two threads that import modules of one circle can meet half-initialised ones.
"""

from __future__ import annotations

import functools
import importlib
import threading
import time

LIBRARIES = ("scipy.stats", "statsmodels.stats.proportion", "glmm", "plotly.graph_objects", "pandas.io.formats.style")
QUIET_S = 1.0
"""Seconds of which the process may use a tenth to count as idle."""


@functools.cache
def begin(page: str) -> threading.Thread:
    """Start the importing thread, once per process; `page` is the module of the Results page."""
    thread = threading.Thread(target=_import_when_idle, args=(page,), name="warming", daemon=True)
    thread.start()
    return thread


def _import_when_idle(page: str) -> None:
    used = QUIET_S
    while used > QUIET_S / 10:
        before = time.process_time()
        time.sleep(QUIET_S)
        used = time.process_time() - before
    for name in (*LIBRARIES, page):
        importlib.import_module(name)
