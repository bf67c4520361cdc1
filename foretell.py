#!/usr/bin/env python3
"""Foretell's one entry: ``python foretell.py [COMMAND ...]``, and ``import foretell``. Standard library only.

It creates ``.venv`` next to itself, installs the requirements once (again when they change) and hands over to
``dashboard.cli``. An active environment that already satisfies the requirements is used as it is.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from dashboard.cli.commands import COMMANDS
from dashboard.cli.installation import fail, find_python
from dashboard.notebook import __getattr__  # noqa: F401 - Python asks it for what `import foretell` offers

if TYPE_CHECKING:
    from dashboard.notebook import *  # noqa: F403

ROOT = Path(__file__).resolve().parent
RUNTIME = ROOT / "requirements.txt"
DEVELOPMENT = ROOT / "requirements-dev.txt"
DOCUMENTATION = ROOT / "requirements-docs.txt"
SITE = ROOT / "docs" / "_build"

# Measured (docs/decisions/0002-dependencies.md). glibc hands every large activation back to the system and asks for it
# again: keeping it makes a forward pass 1.4 to 2.4 times faster. Torch's threads spin while they wait for each other:
# as soon as anything else uses a core, waiting asleep is 4 times faster.
TUNING = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "4294967296",
    "MALLOC_TOP_PAD_": "268435456",
    "OMP_WAIT_POLICY": "PASSIVE",
}

# Every core runs a test process already. Threads of several processes on one core wait for each other while they spin:
# the statistics of tests/core/test_concepts.py took 16 times the processor time.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}

# Tests of browsers and servers wait for about half of their time: with one test process more than cores, two cores were
# idle for two fifths of the time of the slow files.
WAITING = 2

# The headless shell first: it has no window's own pages to run, and takes a third of the processor time for a page.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
PACKAGES = BROWSERS[:2]

# Weights from others are loaded as numbers, never as a program (torch.load).
SAFETY = {"TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1"}


def main(arguments: list[str]) -> int:
    """Set up what is needed and run the command; the exit code is its own."""
    if sys.version_info < (3, 11):  # noqa: UP036 - a readable error for users of an older version
        return fail(f"Foretell needs Python 3.11 or newer; this is {sys.version.split()[0]}. Install a newer one.")
    if arguments[:1] in (["-h"], ["--help"], ["help"]):
        print(usage())
        return 0
    command = arguments[0] if arguments else "serve"
    if command == "test":
        return run_tests(arguments[1:])
    if command == "docs":
        return build_docs(arguments[1:])
    if command not in COMMANDS:
        return fail(f"Unknown command {command!r}. Commands: {', '.join(summaries())}.")
    python = find_python(RUNTIME, DEVELOPMENT) if COMMANDS[command].needs_development else find_python(RUNTIME)
    return become([python, "-P", "-m", "dashboard.cli", command, *arguments[1:]], child_environment())


def summaries() -> dict[str, str]:
    """Return each command's summary by its name."""
    own = {
        "docs": "build the documentation as a website and open it",
        "test": "run every test (--no-browser leaves out those that need one)",
    }
    return {name: command.summary for name, command in COMMANDS.items()} | own


def become(command: list[str], environment: dict[str, str]) -> int:
    """Replace this process where the system can, so that a signal stops the server and not its parent."""
    if os.name == "nt":
        return subprocess.call(command, env=environment)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(command[0], command, environment)


def usage() -> str:
    """List the commands, without installing anything."""
    width = max(map(len, summaries()))
    lines = [f"  {name:<{width}}  {summary}" for name, summary in summaries().items()]
    return "\n".join(
        [
            "Do explanations help people predict what an AI will say?",
            "",
            "python foretell.py            set up, open the pages in the browser and build the demo study",
            "python foretell.py COMMAND    one of the commands below; COMMAND --help says more, with an example",
            "",
            *lines,
            "",
            "Exit codes: 0 success, 1 a check or the run failed, 2 invalid input (the message says what to correct).",
        ]
    )


def child_environment() -> dict[str, str]:
    """Return the environment of every process that Foretell starts: packages importable, torch tuned."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**TUNING, **SAFETY, **os.environ, "PYTHONPATH": path}


def run_tests(arguments: list[str]) -> int:
    """Set up for tests, find a browser, run pytest. ``--no-browser`` leaves the browser tests out."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(
            "python foretell.py test [--quick] [--no-browser] [pytest arguments]\n\n"
            "--quick runs the tests that the changes since the last commit reach, the nearest first, in under three\n"
            "minutes. Slow tests are left out.\n\n"
            "Example: python foretell.py test -k glmm"
        )
        return 0
    with_browser, is_quick = "--no-browser" not in arguments, "--quick" in arguments
    arguments = [a for a in arguments if a not in ("--no-browser", "--quick")]
    python = find_python(RUNTIME, DEVELOPMENT)
    environment = child_environment()
    left_out = ["slow"] if is_quick else []
    if not with_browser:
        left_out.append("browser")
    elif chromium := find_chromium(python):
        environment["FORETELL_CHROMIUM"] = chromium
    else:
        return fail(
            "No Chromium could be found or installed for the browser tests. Install one and set FORETELL_CHROMIUM "
            "to its path, or leave those tests out with --no-browser."
        )
    if left_out:
        arguments += ["-m", " and ".join(f"not {mark}" for mark in left_out)]
    if not any(argument.startswith(("-n", "--pdb")) for argument in arguments):
        # A file's tests share its servers; tests/conftest.py puts the slow files first.
        workers = (os.cpu_count() or 1) + WAITING
        arguments = ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder", *arguments]
    environment = ONE_THREAD | environment
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # each of a thousand processes would compile the project again
    module = "tests.quick" if is_quick else "pytest"
    return subprocess.call([python, "-m", module, *arguments], cwd=ROOT, env=environment)


def build_docs(arguments: list[str]) -> int:
    """Build the documentation and open it. ``--no-browser`` only builds it, ``--out FOLDER`` puts it elsewhere."""
    parser = argparse.ArgumentParser("python foretell.py docs", epilog="Example: python foretell.py docs --no-browser")
    parser.add_argument("--no-browser", action="store_true", help="only build the documentation")
    parser.add_argument("--out", type=Path, default=SITE, help="folder for the pages (default: docs/_build)")
    given = parser.parse_args(arguments)
    site = given.out.resolve()
    command = docs_command(find_python(RUNTIME, DOCUMENTATION), site)
    if subprocess.call(command, cwd=ROOT, env=child_environment()) != 0:
        return fail("The documentation could not be built: the lines above say why.")
    page = site / "index.html"
    print(page)
    if not given.no_browser:
        webbrowser.open(page.as_uri())
    return 0


def docs_command(python: str, site: Path) -> list[str]:
    """Return the command that builds the documentation; a warning is an error."""
    options = ["-b", "html", "-c", "docs", "--fail-on-warning", "--keep-going", "--quiet"]
    return [python, "-m", "sphinx", *options, ".", str(site)]


def find_chromium(python: str) -> str | None:
    """Find a Chromium: FORETELL_CHROMIUM, one installed, one from the system's packages, or Playwright's own."""
    chromium = find_installed_chromium()
    if chromium is None and shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        print("Installing Chromium from the system's packages ...", flush=True)
        subprocess.call(["apt-get", "update", "-qq"])
        for package in PACKAGES:
            subprocess.call(["apt-get", "install", "-y", "-qq", package], stdout=subprocess.DEVNULL)
            if (chromium := find_installed_chromium()) is not None:
                break
    return chromium or playwright_chromium(python)


def find_installed_chromium() -> str | None:
    """Find an installed Chromium or Chrome."""
    named = os.environ.get("FORETELL_CHROMIUM")
    if named:
        return named if Path(named).is_file() else None
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def playwright_chromium(python: str) -> str | None:
    """Return Playwright's own browser, downloaded if possible."""
    try:
        subprocess.run([python, "-m", "playwright", "install", "chromium"], check=True, timeout=600)
    except (subprocess.SubprocessError, OSError):
        return None
    code = "from playwright.sync_api import sync_playwright as s\nwith s() as p: print(p.chromium.executable_path)"
    path = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False).stdout.strip()
    return path if Path(path).is_file() else None


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
