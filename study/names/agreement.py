"""How well two raters agree on codes: Cohen's kappa with its interval, and the table of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

FEWEST = 2
"""Texts that both raters have to code before their agreement is estimated."""
SMALLEST = 1e-12
"""Variance of kappa below which it is 0 but for rounding."""


@dataclass(frozen=True)
class Agreement:
    """The agreement of two raters.

    Attributes
    ----------
    table
        Number of texts by the code of the first rater (rows) and of the second (columns).
    kappa, low, high
        Cohen's kappa and its 95% interval; kappa is None where ``undefined`` says why, and the interval also where its
        standard error is 0.
    """

    table: pd.DataFrame
    kappa: float | None
    low: float | None
    high: float | None
    undefined: str = ""

    @property
    def count(self) -> int:
        """Number of texts that both coded."""
        return int(self.table.to_numpy().sum())

    @property
    def share(self) -> float:
        """Share of the texts to which both gave the same code; NaN without texts."""
        return float(np.trace(self.table.to_numpy()) / self.count) if self.count else float("nan")

    def describe(self) -> str:
        """Say how well they agree, in one sentence, or why that cannot be said."""
        if self.count == 0:
            return "Cohen's kappa is not defined: no text has the codes of both raters yet."
        same = f"The raters gave the same code to {self.share:.0%} of {self.count:,} texts"
        if self.kappa is None:
            return f"{same}; Cohen's kappa is not defined: {self.undefined}."
        if self.low is None:
            return f"{same}: Cohen's kappa is {self.kappa:.2f}; these codes do not vary enough for an interval."
        return f"{same}: Cohen's kappa is {self.kappa:.2f}, 95% CI [{self.low:.2f}, {self.high:.2f}]."


def measure_agreement(first: Sequence[str], second: Sequence[str], codes: Sequence[str]) -> Agreement:
    """Measure the agreement of two raters on the same texts.

    Kappa and its interval (Fleiss, Cohen & Everitt, 1969) are those of statsmodels; the interval ends at -1 and 1.
    """
    kinds = [pd.Categorical(given, categories=list(codes)) for given in (first, second)]
    table = pd.crosstab(*kinds, dropna=False).reindex(index=list(codes), columns=list(codes), fill_value=0)
    counts = table.to_numpy()
    if len(first) < FEWEST:
        return Agreement(table, None, None, None, f"{len(first)} text has the codes of both raters, and it takes more")
    if (counts.sum(0) > 0).sum() == 1 and (counts.sum(1) > 0).sum() == 1 and np.trace(counts) == len(first):
        only = str(table.index[int(counts.sum(1).argmax())]).replace("_", " ")
        return Agreement(
            table, None, None, None, f"both raters gave every text the code {only!r}, so chance agrees too"
        )
    from statsmodels.stats.inter_rater import cohens_kappa  # takes a second to import

    with np.errstate(invalid="ignore", divide="ignore"):
        made = cohens_kappa(counts)
    kappa, variance = float(made.kappa), float(made.var_kappa)
    if not variance > SMALLEST:
        return Agreement(table, kappa, None, None)
    return Agreement(table, kappa, max(-1.0, float(made.kappa_low)), min(1.0, float(made.kappa_upp)))
