"""Work in a process of its own, at a lower priority: it keeps no thread of a server waiting and gives way to its pages.

The process reports on its standard output, one JSON object a line. Its standard input is held open by whoever started
it: when that ends, even by kill -9, the process ends too.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from core.errors import ForetellError
from core.types import Progress, silent
from study.workspace.workspace import ROOT

NICE = 10
"""Added to the niceness of the process and of all that it starts: with both busy, a page gets nine tenths of a core."""
NICENESS = "FORETELL_NICENESS"
"""The environment variable of another number: where other work keeps all cores busy, 10 leaves a build nothing."""
CHECK_S = 0.2
"""How often a caller's progress is called while the process is silent, so that it can stop the work."""
GOODBYE_S = 10.0


def run_apart(function: str, *arguments: str, progress: Progress = silent) -> str:
    """Run ``module:function`` in another process, as ``function(*arguments, progress=...)``; return its result, a text.

    Raise from ``progress`` to stop it.

    Raises
    ------
    ForetellError
        The work raised one, or the process was killed.
    """
    with _start(function, arguments) as process:
        assert process.stdout is not None
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
        ended = _follow(lines, progress)
        code = process.wait()
    if "result" in ended:
        return str(ended["result"])
    if "failed" in ended:
        raise ForetellError(ended["failed"])
    raise ForetellError(
        f"The process in the background ended without a result (exit code {code}). If memory ran out, close other "
        "programs. Start the work again: finished parts are kept."
    )


@contextmanager
def _start(function: str, arguments: tuple[str, ...]) -> Iterator[subprocess.Popen[str]]:
    """Start the process; it does not outlive the block."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, function, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        encoding="utf-8",
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(GOODBYE_S)
            process.kill()
        process.communicate()


def _read(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    with suppress(ValueError):  # closed meanwhile: the work was stopped
        for line in stream:
            lines.put(line)
    lines.put(None)


def _follow(lines: queue.Queue[str | None], progress: Progress) -> dict[str, Any]:
    """Hand on the reports of the process until its last line, which is returned; {} if it ended without."""
    last = (0, 0, "")
    while True:
        try:
            line = lines.get(timeout=CHECK_S)
        except queue.Empty:
            line = ""
        if line is None:
            return {}
        said = json.loads(line) if line else {}
        if "progress" not in said and said:
            return dict(said)
        last = tuple(said.get("progress", last))
        progress(*last)


def main(function: str, *arguments: str) -> None:
    """Do the work that `run_apart` has asked for, in this process."""
    channel = _take_output()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then ends this process
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # helpers end, and no half-written file is left
    threading.Thread(target=_end_with_caller, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(find_niceness())

    def say(**what: Any) -> None:
        channel.write(json.dumps(what) + "\n")
        channel.flush()

    from data.errors import DataError

    name, _, called = function.partition(":")
    work: Callable[..., str] = getattr(importlib.import_module(name), called)
    try:
        say(result=work(*arguments, progress=lambda *report: say(progress=report)))
    except (ForetellError, DataError) as error:
        say(failed=str(error))


def find_niceness() -> int:
    """Return what is added to the niceness of work in the background, from 0 to 19."""
    given = os.environ.get(NICENESS, "")
    return min(int(given), 19) if given.isascii() and given.isdigit() else NICE


def _take_output() -> IO[str]:
    """Keep the standard output for reports: what a library prints goes where errors go."""
    sys.stdout.flush()
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return channel


def _end_with_caller() -> None:
    """Wait until whoever holds the standard input has ended, then end this process in order."""
    with suppress(OSError, ValueError):
        while os.read(0, 1):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(*sys.argv[1:])
