"""The command line as a person meets it, started from a process that has imported the libraries already.

Each command is a process of its own, with its own folder, environment, exit code and output; what is saved is the
import of torch and pandas, 3 s of processor time for each of more than a hundred commands. `tests/test_foretell.py`
starts commands in new interpreters.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import foretell

ROOT = Path(__file__).parents[1]
LIBRARIES = [
    "torch",
    "pandas",
    "statsmodels.formula.api",
    "scipy.stats",
    "sklearn.linear_model",
    "sklearn.decomposition",
    "plotly.graph_objects",
    "sqlalchemy",
    "PIL.Image",
]


def run(*arguments: object, home: Path | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``python foretell.py ARGUMENTS`` and wait for its end."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    environment = dict(os.environ) | ({"FORETELL_HOME": str(home)} if home else {})
    words = [str(argument) for argument in arguments]
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = context.Process(target=_become, args=(words, environment, str(cwd or ROOT), str(out), str(err)))
        process.start()
        process.join()
        return subprocess.CompletedProcess(words, process.exitcode or 0, out.read_text(), err.read_text())


def _become(words: Sequence[str], environment: dict[str, str], cwd: str, out: str, err: str) -> None:
    """Be the command: its folder, environment and output, and this process ends with its exit code."""
    for number, path in ((1, out), (2, err)):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, number)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    foretell.become = _run_here
    code = foretell.main(list(words))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    sys.exit(code)


def _run_here(command: list[str], environment: dict[str, str]) -> int:
    """Run what the launcher would become."""
    _, _, _, module, *words = command
    os.environ.update(environment)
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0
