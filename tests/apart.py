"""Work for `study.workspace.apart`, in a module that is imported at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from core.errors import ForetellError
from core.types import Progress, silent


def count(number: str, *, progress: Progress = silent) -> str:
    """Report each step, and return with which niceness; what is printed must not be taken for a report."""
    for step in range(int(number)):
        print("not a report")  # noqa: T201
        progress(step + 1, int(number), "counting")
    return str(os.nice(0))


def refuse(*, progress: Progress = silent) -> str:
    """Fail as work on bad input does."""
    raise ForetellError("The images are gone.")


def die(*, progress: Progress = silent) -> str:
    """End as the system ends a process when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def wait(folder: str, *, progress: Progress = silent) -> str:
    """Start a child that waits for ever, as a build does, and write down both."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        Path(folder, "started").write_text(f"{os.getpid()} {child.pid}")
        while True:
            progress(0, 0, "waiting")
            time.sleep(0.02)
    finally:
        child.kill()
