"""Bayesian fits from Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from core.errors import ForetellError
from dashboard.notebook.display import escape
from dashboard.notebook.tables import PrintedTable
from study.analysis.bayes import printing
from study.analysis.bayes.means import estimate_means
from study.analysis.bayes.posterior import Posterior
from study.analysis.means import equivalence
from study.analysis.means.request import PAIRWISE


@dataclass(frozen=True)
class PrintedPosterior:
    """A Bayesian fit, which prints itself with its priors and whether it is to be believed.

    Attributes
    ----------
    posterior
        The draws, the design, and the diagnosis.
    frame
        The rows that it was fitted to.
    """

    posterior: Posterior
    frame: pd.DataFrame = field(repr=False, compare=False)

    @property
    def table(self) -> pd.DataFrame:
        """The parameters: mean, median, 95% interval, R-hat and effective draws of each."""
        return self.posterior.table

    def means(
        self,
        asked: str,
        *,
        contrasts: Sequence[str] = (PAIRWISE,),
        bounds: str | float | Sequence[float] | None = None,
    ) -> PrintedTable:
        """Estimate accuracies of factors, averaged over the random effects, and the differences between them.

        Parameters
        ----------
        asked, contrasts
            As of `FittedModel.means`.
        bounds
            In percentage points, 5 or (-5, 10): adds the probability that a difference lies between them.

        Returns
        -------
        PrintedTable
            Its ``table`` has the differences.

        Raises
        ------
        ForetellError
            The fit is not to be believed, or as of `FittedModel.means`.
        """
        made = self.posterior.diagnostics
        if not made.is_reliable:
            raise ForetellError(made.describe())
        limits = None if bounds is None else equivalence.read_bounds(bounds)
        means = estimate_means(self.frame, self.posterior, asked, contrasts=contrasts, bounds=limits)
        return PrintedTable(means.contrasts, printing.write_means(means, limits))

    def __str__(self) -> str:
        return "\n".join(printing.write_posterior(self.posterior))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
