"""A model in R's glmmTMB: the same approximation, differentiated by machine instead of by finite differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from tests.study.analysis import rscript

_MODEL = """
model <- glmmTMB(FORMULA, data, family = FAMILY, REML = REML_)
sds <- lapply(VarCorr(model)$cond, function(block) attr(block, "stddev"))
out <- list(terms = text(names(fixef(model)$cond)), estimate = number(fixef(model)$cond),
            se = number(sqrt(diag(as.matrix(vcov(model)$cond)))), loglik = number(as.numeric(logLik(model))),
            df = number(attr(logLik(model), "df")),
            group = text(rep(names(sds), lengths(sds))), sd = number(unlist(sds)))
"""

needed = rscript.needed("glmmTMB")


def fit(
    frame: pd.DataFrame, formula: str, folder: Path, *, reml: bool | None = None, family: str | None = None
) -> dict[str, Any]:
    """terms, estimate, se, loglik, df, group, sd of a binomial model; linear if `reml` is given."""
    family = family or ("binomial" if reml is None else "gaussian")
    model = _MODEL.replace("FORMULA", formula).replace("FAMILY", family).replace("REML_", str(bool(reml)).upper())
    return rscript.run(frame, "glmmTMB", model, folder)
