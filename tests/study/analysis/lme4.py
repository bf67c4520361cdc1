"""The same model in R's lme4, where R and lme4 are installed: the other fit that fresh data are held against."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

# tolPwrss: stock lme4 stops its inner loop early and is then off by 1e-3 in deviance (lme4 issue 998).
_SCRIPT = """
suppressMessages(library(lme4))
data <- read.csv(FILE, stringsAsFactors = TRUE)
LEVELS
model <- FIT
number <- function(x) paste0("[", paste(format(x, digits = 15), collapse = ","), "]")
text <- function(x) paste0("[", paste0('"', x, '"', collapse = ","), "]")
sds <- as.data.frame(VarCorr(model)); sds <- sds[is.na(sds$var2) & sds$grp != "Residual", ]
out <- list(terms = text(names(fixef(model))), estimate = number(fixef(model)),
            se = number(sqrt(diag(as.matrix(vcov(model))))), loglik = number(as.numeric(logLik(model))),
            df = number(attr(logLik(model), "df")), group = text(sds$grp), sd = number(sds$sdcor))
MORE
cat("{", paste0('"', names(out), '":', unlist(out), collapse = ","), "}")
"""
_GLMER = (
    "glmer({formula}, data, binomial, nAGQ = {nodes}, "
    'control = glmerControl(optimizer = "bobyqa", tolPwrss = 1e-12, optCtrl = list(rhoend = 1e-9, maxfun = 1e5)))'
)
_LMER = "lmer({formula}, data, REML = {reml})"


@cache
def installed() -> bool:
    """Whether Rscript and lme4 are there."""
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(lme4)"], capture_output=True, check=False).returncode == 0


needed = pytest.mark.skipif(not installed(), reason="R with lme4 is not installed")


def fit(
    frame: pd.DataFrame, formula: str, folder: Path, *, nodes: int = 1, reml: bool | None = None, more: str = ""
) -> dict[str, Any]:
    """terms, estimate, se, loglik, df, group, sd of a model; linear if `reml` is given. `more` adds to ``out``."""
    path = folder / "lme4.csv"
    frame.to_csv(path, index=False)
    call = _GLMER.format(formula=formula, nodes=nodes)
    if reml is not None:
        call = _LMER.format(formula=formula, reml=str(reml).upper())
    levels = "".join(f"data${name} <- {_factor(name, frame)}\n" for name in frame if _is_factor(frame, name))
    script = _SCRIPT.replace("FILE", repr(str(path))).replace("LEVELS", levels)
    script = script.replace("FIT", call).replace("MORE", more)
    done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _is_factor(frame: pd.DataFrame, name: str) -> bool:
    return isinstance(frame[name].dtype, pd.CategoricalDtype)


def _factor(name: str, frame: pd.DataFrame) -> str:
    levels = ", ".join(repr(str(level)) for level in frame[name].cat.categories)
    return f"factor(data${name}, levels = c({levels}))"
