"""A model in R's lme4, searched more closely than lme4 does by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from tests.study.analysis import rscript

_MODEL = """
model <- FIT
sds <- as.data.frame(VarCorr(model)); sds <- sds[is.na(sds$var2) & sds$grp != "Residual", ]
out <- list(terms = text(names(fixef(model))), estimate = number(fixef(model)),
            se = number(sqrt(diag(as.matrix(vcov(model))))), loglik = number(as.numeric(logLik(model))),
            df = number(attr(logLik(model), "df")), group = text(sds$grp), sd = number(sds$sdcor))
MORE
"""
# tolPwrss: stock lme4 stops its inner loop early and is then off by 1e-3 in deviance (lme4 issue 998).
_GLMER = (
    "glmer({formula}, data, binomial, nAGQ = {nodes}, "
    'control = glmerControl(optimizer = "bobyqa", tolPwrss = 1e-12, optCtrl = list(rhoend = 1e-9, maxfun = 1e5)))'
)
_LMER = "lmer({formula}, data, REML = {reml})"
SE_RTOL = 0.01
"""lme4 takes standard errors from finite differences, so up to 1 % off (issue 998)."""

needed = rscript.needed("lme4")


def fit(
    frame: pd.DataFrame, formula: str, folder: Path, *, nodes: int = 1, reml: bool | None = None, more: str = ""
) -> dict[str, Any]:
    """terms, estimate, se, loglik, df, group, sd of a model; linear if `reml` is given. `more` adds to ``out``."""
    call = _GLMER.format(formula=formula, nodes=nodes)
    if reml is not None:
        call = _LMER.format(formula=formula, reml=str(reml).upper())
    return rscript.run(frame, "lme4", _MODEL.replace("FIT", call).replace("MORE", more), folder)
