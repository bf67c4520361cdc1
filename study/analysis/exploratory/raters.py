"""How well the two raters of texts agree: Cohen's kappa with its interval, and the table of their codes."""

from __future__ import annotations

import pandas as pd

from study.analysis.exploratory.analysis import ExploratoryAnalysis
from study.analysis.responses.codes import CODES
from study.names.agreement import measure_agreement


def tabulate(frame: pd.DataFrame) -> pd.DataFrame:
    """Count the texts by the codes of both raters.

    Returns
    -------
    pandas.DataFrame
        first_code, second_code, texts.
    """
    coded = frame.dropna(subset=list(CODES))
    first, second = (coded[name].astype(str).tolist() for name in CODES)
    codes = sorted({*first, *second})
    table = measure_agreement(first, second, codes).table
    rows = [(a, b, int(table.loc[a, b])) for a in codes for b in codes]
    return pd.DataFrame(rows, columns=["first_code", "second_code", "texts"])


def describe(table: pd.DataFrame) -> str:
    """Say how well the raters agree."""
    first, second = (table[name].repeat(table["texts"]).tolist() for name in ("first_code", "second_code"))
    return measure_agreement(first, second, sorted({*table["first_code"]})).describe()


ANALYSIS = ExploratoryAnalysis(
    "Agreement of the raters",
    "Each text was coded by two raters who knew neither the condition nor each other's codes. Cohen's kappa is 0 for "
    "raters who agree as often as by chance, and 1 for raters who always agree; its interval is that of Fleiss, Cohen "
    "and Everitt (1969). Every text counts once, so texts of the same participant are taken as independent.",
    lambda study: (tabulate(study.data.every), None),
    needs=lambda study: study.data.task.is_written and set(CODES) <= set(study.data.every),
    conclude=lambda _, table: describe(table),
)
