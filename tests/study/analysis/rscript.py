"""The same model in R: the other fits that fresh data are held against, where R and its package are installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from study.analysis.models.mixed import MixedModel

_SESSION = """
suppressMessages(library(PACKAGE))
scripts <- file("stdin", "r")
while (length(path <- readLines(scripts, 1))) {
  tryCatch(source(path, local = new.env()), error = function(e) cat("Error:", conditionMessage(e)))
  cat("\\nEND\\n"); flush(stdout())
}
"""
"""Loading a package takes R longer than most fits, so that each process of the tests does it once."""
END = "END\n"
_SCRIPT = """
data <- read.csv(FILE, stringsAsFactors = TRUE)
LEVELS
number <- function(x) paste0("[", paste(format(x, digits = 15), collapse = ","), "]")
text <- function(x) paste0("[", paste0('"', x, '"', collapse = ","), "]")
MODEL
cat("{", paste0('"', names(out), '":', unlist(out), collapse = ","), "}")
"""


@cache
def installed(package: str) -> bool:
    """Whether Rscript and the package are there."""
    if shutil.which("Rscript") is None:
        return False
    there = f'quit(status = !nzchar(system.file(package = "{package}")))'
    return subprocess.run(["Rscript", "-e", there], capture_output=True, check=False).returncode == 0


@cache
def _session(package: str) -> subprocess.Popen[str]:
    """An R that runs the scripts whose paths it reads, and ends with this process."""
    command = ["Rscript", "-e", _SESSION.replace("PACKAGE", package)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)


def needed(package: str) -> pytest.MarkDecorator:
    """A test that is skipped where the package is not there, and says so."""
    return pytest.mark.skipif(not installed(package), reason=f"R with {package} is not installed")


def run(frame: pd.DataFrame, package: str, model: str, folder: Path) -> dict[str, Any]:
    """The list ``out`` that the R code `model` makes of ``data``, with ``number`` and ``text`` to write vectors."""
    path = folder / "data.csv"
    frame.to_csv(path, index=False)
    levels = "".join(f"data${name} <- {_factor(name, frame)}\n" for name in frame if _is_factor(frame, name))
    script = folder / "model.R"
    script.write_text(_SCRIPT.replace("FILE", repr(str(path))).replace("LEVELS", levels).replace("MODEL", model))
    session = _session(package)
    assert session.stdin is not None
    assert session.stdout is not None
    session.stdin.write(f"{script}\n")
    session.stdin.flush()
    said = "".join(takewhile(lambda line: line != END, session.stdout))
    assert said.startswith("{"), said
    return json.loads(said)


def agrees(model: MixedModel, other: dict[str, Any], atol: float = 1e-4, se_rtol: float = 0.0) -> None:
    """Every number of the model: terms, estimate, se, loglik, df, and sd by group."""
    assert [c.term for c in model.coefficients] == other["terms"]
    np.testing.assert_allclose([c.estimate for c in model.coefficients], other["estimate"], atol=atol, rtol=0)
    np.testing.assert_allclose([c.se for c in model.coefficients], other["se"], atol=atol, rtol=se_rtol)
    assert model.loglik == pytest.approx(other["loglik"][0], abs=1e-3)
    assert model.df == other["df"][0]
    ours = sorted((_plain(r.group), r.sd) for r in model.random)
    theirs = sorted(zip(map(_plain, other["group"]), other["sd"], strict=True))
    assert [group for group, _ in ours] == [group for group, _ in theirs]
    np.testing.assert_allclose([sd for _, sd in ours], [sd for _, sd in theirs], atol=1e-3, rtol=0)


def _plain(group: str) -> str:
    """``id:item`` and ``item:id`` are the same grouping."""
    return ":".join(sorted(group.split(":")))


def _is_factor(frame: pd.DataFrame, name: str) -> bool:
    return isinstance(frame[name].dtype, pd.CategoricalDtype)


def _factor(name: str, frame: pd.DataFrame) -> str:
    levels = ", ".join(repr(str(level)) for level in frame[name].cat.categories)
    return f"factor(data${name}, levels = c({levels}))"
