"""The command line as a person meets it, started from a process that has imported the libraries already.

Each command is a process of its own, with its own folder, environment, exit code and output; what is saved is the
import of torch and pandas, 3 s of processor time for each of more than a hundred commands. `tests/test_foretell.py`
starts commands in new interpreters.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import resource
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple

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
    "streamlit.testing.v1",
    "uvicorn",
    "httpx",
    "PIL.Image",
    "pydantic",
    "authlib.integrations.starlette_client",
    "jinja2",
    "joserfc.jwt",
    "filelock",
    "tomlkit",
    "argon2",
    "segno",
    "torch.fx.experimental.optimization",
]


def run(
    *arguments: object, home: Path | None = None, cwd: Path | None = None, root: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run ``python foretell.py ARGUMENTS`` and wait for its end; `root` may be a copy of the project."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        environment = {"FORETELL_HOME": str(home)} if home else {}
        process = start(*arguments, out=out, err=err, environment=environment, cwd=cwd, root=root)
        process.join()
        words = [str(argument) for argument in arguments]
        return subprocess.CompletedProcess(words, process.exitcode or 0, out.read_text(), err.read_text())


def start(
    *arguments: object,
    out: Path,
    err: Path,
    environment: dict[str, str],
    cwd: Path | None = None,
    root: Path = ROOT,
    open_files: int | None = None,
) -> ForkServerProcess:
    """Start ``python foretell.py ARGUMENTS``, or ``-c CODE ARGUMENTS``; `open_files` is what `ulimit -n` says."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    life = Life(dict(os.environ) | environment, str(cwd or root), str(root), str(out), str(err), open_files)
    process = context.Process(target=_become, args=([str(argument) for argument in arguments], life))
    process.start()
    return process


class Life(NamedTuple):
    """What a process has of its own."""

    environment: dict[str, str]
    cwd: str
    root: str
    out: str
    err: str
    open_files: int | None


def _become(words: Sequence[str], life: Life) -> None:
    """Be the command: its folder, environment and output, and this process ends with its exit code."""
    for number, path in ((1, life.out), (2, life.err)):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(handle, number)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    if life.open_files is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (life.open_files, life.open_files))
    os.chdir(life.cwd)
    os.environ.clear()
    os.environ.update(life.environment)
    if life.root != str(ROOT):
        _forget_project(life.root)
    code = _run_code(words) if words[0] == "-c" else _run_command(words)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    sys.exit(code)


def _forget_project(root: str) -> None:
    """Import the project from another folder from now on."""
    sys.path[:] = [root, *(path for path in sys.path if path not in ("", str(ROOT)))]
    own = {path.name for path in ROOT.iterdir() if path.is_dir()} | {"foretell"}
    for name in [name for name in sys.modules if name.partition(".")[0] in own]:
        del sys.modules[name]


def _run_code(words: Sequence[str]) -> int:
    _, code, *arguments = words
    sys.argv = ["-c", *arguments]
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    return 0


def _run_command(words: Sequence[str]) -> int:
    foretell: Any = importlib.import_module("foretell")  # of the root
    foretell.become = _run_here
    return int(foretell.main(list(words)))


def _run_here(command: list[str], environment: dict[str, str]) -> int:
    """Run what the launcher would become."""
    _, _, _, module, *words = command
    os.environ.update(environment)
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0
