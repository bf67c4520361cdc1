"""One thread for linear algebra while models are fitted.

Their matrices are small: OpenBLAS spends most of its time handing them to threads that then spin, eight times the
processor time for the slopes of a study of the paper's size, and the fits take longer for it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import OpenBLASController, ThreadpoolController


@lru_cache(maxsize=1)
def _find_libraries(modules: int) -> ThreadpoolController:  # noqa: ARG001
    """Find the loaded libraries again once there are more modules, with which they come: it takes 3 ms."""
    return ThreadpoolController()


class _Limit:
    """How many fits run now, and what undoes the limit, which all threads of a process share."""

    lock = threading.Lock()
    users = 0
    undo: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run linear algebra in one thread until the last of all threads that are in here has left."""
    with _Limit.lock:
        if _Limit.users == 0:
            _Limit.undo = _find_libraries(len(sys.modules)).limit(limits=1, user_api="blas")
        _Limit.users += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.users -= 1
            if _Limit.users == 0:
                OpenBLASController.clear_controlling_thread(force=True)  # it heeds only the thread that set the limit
                _Limit.undo.restore_original_limits()
                OpenBLASController.clear_controlling_thread(force=True)
