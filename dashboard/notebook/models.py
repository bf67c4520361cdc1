"""Mixed models from Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dashboard.notebook.display import escape
from study.analysis.models import coding, mixed, printing
from study.analysis.models import formula as formulas
from study.analysis.models.records import MixedModel


@dataclass(frozen=True)
class FittedModel:
    """A fitted model, which prints itself with its warnings; ``model`` has everything else.

    Attributes
    ----------
    model
        Coefficients, random effects, likelihood and messages.
    """

    model: MixedModel

    @property
    def coefficients(self) -> pd.DataFrame:
        """The fixed effects: a row for each term."""
        return pd.DataFrame(self.model.as_dict()["coefficients"]).set_index("term")

    @property
    def random(self) -> pd.DataFrame:
        """The random effects: a row for each standard deviation."""
        return pd.DataFrame(self.model.as_dict()["random"])

    def __str__(self) -> str:
        return "\n".join(printing.lines(self.model))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def glmm(
    frame: pd.DataFrame,
    formula: str,
    *,
    family: str = "binomial",
    link: str | None = None,
    reference: Mapping[str, str] | None = None,
    weights: str | None = None,
    reml: bool = False,
    agq: int = 1,
) -> FittedModel:
    """Fit a generalised linear mixed model; the formula is lme4's.

    Parameters
    ----------
    frame
        A row for each response. Grouping columns are read as factors.
    family, link
        "binomial" (link "logit" or "probit"), "gaussian" or "poisson".
    reference
        Reference levels by column.
    weights
        Column of prior weights.
    reml
        For a gaussian model: restricted maximum likelihood.
    agq
        Quadrature points; 1 is the Laplace approximation.

    Raises
    ------
    ForetellError
        A formula that does not fit the columns, or data without a fit.
    """
    groups = {name: frame[name].astype(str) for name in formulas.groupings(formula) if name in frame}
    coded = coding.with_reference(frame.assign(**groups), dict(reference or {}))
    settings: dict[str, Any] = {"family": family, "link": link, "agq": agq, "reml": reml, "weights": weights}
    return FittedModel(mixed.fit(coded, formula, **settings))
