"""Evidence for no difference: equivalence tests and Bayes factors of contrasts between conditions."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import t

from study.analysis.means import equivalence
from study.analysis.means.adjustment import holm
from study.analysis.means.equivalence import DIFFERENT, EQUIVALENT, SMALL, UNTESTABLE, write_bounds
from study.analysis.models.sentences import coverage_text, describe_p
from study.analysis.words.cells import write_rounded
from study.analysis.words.wording import write_whole_contrast
from study.plan.equivalence import Bounds

COLUMNS = (
    "contrast",
    "points",
    "points_low",
    "points_high",
    "p_equivalence",
    "p_equivalence_holm",
    "p_difference",
    "conclusion",
)


def tabulate(contrasts: pd.DataFrame, bounds: Bounds, level: float) -> pd.DataFrame:
    """Tabulate equivalence tests of contrasts.

    Parameters
    ----------
    contrasts
        As of `study.analysis.planned.contrasts.table`, with intervals that cover 1 - `level`.
    bounds
        In percentage points.
    level
        Of each test.

    Returns
    -------
    pandas.DataFrame
        contrast, points, points_low, points_high (coverage 1 - 2 `level`, uncorrected, as those of the contrasts),
        p_equivalence, p_equivalence_holm (over the contrasts that have one), p_difference (Holm-corrected, of the test
        in log-odds), conclusion (of the corrected tests).
    """
    df = contrasts["df"].fillna(np.inf).to_numpy(np.float64)
    points, low, high = (contrasts[name].to_numpy(np.float64) for name in COLUMNS[1:4])
    se = (high - low) / 2 / t(df).ppf(1 - level / 2)
    half = t(df).ppf(1 - level) * se
    p = equivalence.compute_p(points, se, df, bounds)
    corrected, differs = holm(p), contrasts["p_holm"].to_numpy(np.float64)
    said = equivalence.conclude(corrected, differs, level)
    values = (contrasts["contrast"].to_numpy(), points, points - half, points + half, p, corrected, differs, said)
    return pd.DataFrame(dict(zip(COLUMNS, values, strict=True)))


def describe(table: pd.DataFrame, bounds: Bounds, level: float) -> list[str]:
    """Describe the conclusion of each test in a sentence."""
    return [_describe_row(row, bounds, level) for row in table.to_dict("records")]


def _describe_row(row: dict[str, object], bounds: Bounds, level: float) -> str:
    name, said = write_whole_contrast(str(row["contrast"])), row["conclusion"]
    if said == UNTESTABLE:
        return f"{name}: equivalence cannot be tested with these data."
    low, high, p = (_number(row[column]) for column in ("points_low", "points_high", "p_equivalence_holm"))
    within = f"within {write_bounds(bounds)} percentage points"
    interval = f"{coverage_text(2 * level)} CI {write_rounded(low, 1)} to {write_rounded(high, 1)}"
    if said in (EQUIVALENT, SMALL):
        return f"{name}: {said} {within} ({interval}; Holm-corrected {describe_p(p)})."
    verdict = f"{name}: {'different, and ' if said == DIFFERENT else ''}not shown to be equivalent {within}"
    if bounds[0] < low and high < bounds[1]:
        return f"{verdict}: the {interval} lies within, but not after correction for the number of contrasts " + (
            f"(Holm-corrected {describe_p(p)})."
        )
    return f"{verdict}: the {interval} reaches beyond."


def _number(value: object) -> float:
    return float(value)  # type: ignore[arg-type]


def explain(level: float) -> str:
    """Explain the table of equivalence tests."""
    return (
        "Two one-sided tests of the difference in accuracy, averaged over the random effects (Schuirmann, 1987). The "
        f"{coverage_text(2 * level)} intervals are those of these tests, uncorrected; p (TOST, Holm) is corrected for "
        "the number of contrasts. p (difference) is that of the contrasts in log-odds, corrected likewise. That no "
        "difference was found is no evidence of equivalence: undecided means that the data show neither."
    )
