"""A run that is broken off has said what failed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import PATIENCE_S, ROOT

TEST = """
import time

def test_wrong():
    print("what it printed")
    assert 6 * 7 == 54

def test_slow():
    time.sleep(3600)
"""


def test_a_failure_is_printed_before_the_run_ends(tmp_path: Path) -> None:
    """Catches failures that are listed at the end alone: of a run that is stopped for its time nothing is known."""
    (tmp_path / "test_two.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "tests.failures", "--rootdir", tmp_path, tmp_path]
    with (tmp_path / "log").open("w") as log:
        run = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        end = time.monotonic() + PATIENCE_S
        while "what it printed" not in (text := (tmp_path / "log").read_text()) and time.monotonic() < end:
            assert run.poll() is None, text
            time.sleep(0.1)
        assert "call of test_two.py::test_wrong failed:" in text
        assert "assert (6 * 7) == 54" in text
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()


PAGE = """
def test_page(chromium):
    page = chromium.new_context().new_page()
    page.set_content("<p>what the page showed</p>")
    assert page.title() == "another"
"""


@pytest.mark.browser
def test_a_failure_says_what_its_page_showed(tmp_path: Path) -> None:
    """Catches a timeout of a busy machine of which nobody can say what the browser had in front of it."""
    (tmp_path / "test_one.py").write_text(PAGE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "--rootdir", tmp_path, tmp_path]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert "-- page about:blank\nwhat the page showed" in run.stdout
