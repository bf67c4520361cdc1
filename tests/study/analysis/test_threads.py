"""Fits run their linear algebra in one thread, and leave the process as it was."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from threadpoolctl import threadpool_info, threadpool_limits

from study.analysis.models import mixed
from study.analysis.models.threads import one_blas_thread
from tests.study.analysis.simulated import study

LATER = """
import numpy, scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits
from study.analysis.models.threads import one_blas_thread
with one_blas_thread():
    pass
before = len(threadpool_info())
import cv2
threadpool_limits(2, user_api="blas")
with one_blas_thread():
    found = threadpool_info()
print(len(found) > before, {one["num_threads"] for one in found if one["user_api"] == "blas"})
"""


def count_blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_a_fit_uses_one_thread_and_gives_the_others_back() -> None:
    """Catches fits that take eight times the processor time, in threads that wait for each other."""
    frame = study(seed=3)
    frame.loc[frame["trial_type"] == "std_correct", "correct"] = 1
    seen: list[set[int]] = []

    def name(cell: Mapping[str, Any]) -> str:
        seen.append(count_blas_threads())
        return mixed.plain_cell(cell)

    with threadpool_limits(2, user_api="blas"):
        mixed.fit(frame, "correct ~ trial_type + (1|participant)", cell_name=name)
        assert count_blas_threads() == {2}
    assert seen == [{1}]


def test_fits_that_overlap_leave_the_number_of_threads_as_it_was() -> None:
    """Catches a limit that the last of two threads restores to what the first had set: one thread for ever."""
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with one_blas_thread():
            entered.set()
            leave.wait(300)

    with threadpool_limits(2, user_api="blas"):
        other = threading.Thread(target=stay)
        with one_blas_thread():
            other.start()
            assert entered.wait(300)
        assert count_blas_threads() == {1}
        leave.set()
        other.join(300)
        assert count_blas_threads() == {2}


def test_a_library_that_is_loaded_after_the_first_fit_is_limited_too() -> None:
    """Catches a list of libraries that is made once: OpenCV, loaded by another page, brings an OpenBLAS of its own."""
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "{1}"]
