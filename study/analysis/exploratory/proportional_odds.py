"""Whether the odds ratios of the ordinal model of conditions hold wherever the scale is cut."""

from __future__ import annotations

import numpy as np
import pandas as pd

from study.analysis.exploratory import ordinal
from study.analysis.exploratory.analysis import ExploratoryAnalysis
from study.analysis.models import proportional
from study.analysis.models.proportional import ProportionalOdds


def table(rated: pd.DataFrame) -> pd.DataFrame:
    """Tabulate the odds ratios of conditions against the first, and their range over the thresholds.

    Returns
    -------
    pandas.DataFrame
        trials, condition, odds_ratio (the common one), lowest and highest over the thresholds, and of the one test of
        all rows chisq, df and p (`proportional.check`).

    Raises
    ------
    ForetellError
        The model cannot be fitted, or a level never occurs in one of the conditions.
    """
    coded, model = ordinal.fit(rated)
    made = proportional.check(coded, model)
    compared = ordinal.tabulate(coded, model).dropna(subset=["odds_ratio"]).reset_index(drop=True)
    first = coded["condition"].cat.categories[0]
    ratios = []
    for kind, name in zip(compared["trials"], compared["condition"], strict=True):
        cells = ordinal.make_cells(coded, [name, first], wrong=int(kind == ordinal.KINDS[1]))
        ratios.append(made.list_odds_ratios(*model.design(cells)))
    return compared[["trials", "condition", "odds_ratio"]].assign(
        lowest=np.min(ratios, axis=1), highest=np.max(ratios, axis=1), chisq=made.chisq, df=made.df, p=made.p
    )


def conclude(table: pd.DataFrame, level: float) -> str:
    """Say in a sentence whether the odds are proportional, from `table`."""
    row = table.iloc[0]
    test = ProportionalOdds(float(row["chisq"]), int(row["df"]), float(row["p"]))
    return proportional.describe(test, level)


READING = (
    "The ordinal model has one odds ratio of a higher level for each condition. Here each condition has thresholds of "
    "its own: the lowest and the highest of its odds ratios, each of a level above one of the thresholds. χ², df and p "
    "are of one likelihood-ratio test of all rows: a small p says that conditions change some parts of the scale more "
    "than others."
)

ANALYSIS = ExploratoryAnalysis(
    "Levels by condition: proportional odds",
    READING,
    lambda study: (table(ordinal.rate(study)), None),
    needs=ordinal.is_rated,
    conclude=lambda study, made: conclude(made, study.level),
    is_of_levels=True,
)
