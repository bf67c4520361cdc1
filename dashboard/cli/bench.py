"""``bench``: one of the benchmarks, as JSON."""

from __future__ import annotations

import difflib
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from core.errors import ForetellError

ROOT = Path(__file__).resolve().parents[2]


def list_benchmarks() -> list[str]:
    """List the benchmarks; other modules in their folder are shared code."""
    if not (ROOT / "benchmarks").is_dir():
        raise ForetellError("The benchmarks are not part of the installed package. Run them in a checkout.")
    files = (ROOT / "benchmarks").glob("*.py")
    return sorted(path.stem for path in files if "__main__" in path.read_text(encoding="utf-8"))


def bench(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The benchmark; benchmarks/README.md describes each.")],
    json: Annotated[Path | None, typer.Option(help="Also write the result to this file.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of torch; 1 if other programs use the cores.")] = None,
) -> None:
    """Measure speed against a peer or a physical limit; prints JSON with the machine and the versions.

    Further options go to the benchmark. Example: python foretell.py bench attribution --json attribution.json
    """
    known = list_benchmarks()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(known)}."
        raise ForetellError(f"There is no benchmark {name!r}. {hint}")
    options = [*(["--json", str(json.resolve())] if json else []), *(["--threads", str(threads)] if threads else [])]
    command = [sys.executable, "-m", f"benchmarks.{name}", *options, *context.args]
    raise typer.Exit(subprocess.run(command, cwd=ROOT, check=False).returncode)
