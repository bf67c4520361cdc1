"""The same tests and contrasts with random slopes, and with random intercepts only, as in the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from core.errors import ForetellError
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, TableAndFigure, has_models
from study.analysis.models import formula as formulas
from study.analysis.models import random_effects
from study.analysis.models.sentences import alpha_text
from study.analysis.planned import analysis as planned
from study.analysis.planned import nested, placebos
from study.analysis.planned.contrasts import Contrast
from study.analysis.planned.nested import NestedAnalysis, RatioTest
from study.analysis.responses.reading import Responses
from study.analysis.words.wording import write_whole_contrast

TEST_COLUMNS = ("result", "random_effects", "chisq", "df", "df2", "f", "p", "p_holm")
ACCURACIES = ("accuracy_more", "accuracy_less")
COLUMNS = (*TEST_COLUMNS[:6], *ACCURACIES, "points", "points_low", "points_high", "p", "p_holm")
CONTRAST_COLUMNS = ("result", "random_effects", "points", "points_low", "points_high", "p_holm")
MOST_NAMED = 3
"""Contrasts that a sentence names."""


def _explain(study: AnalysedStudy) -> str:
    """Say what the models leave out, and how to read the comparison."""
    omission = random_effects.omission(study.frame, study.fitted_models.requested_random)
    omission = omission or "The models have every slope that these tests need and the design supports."
    return (
        f"{omission} Where the two differ, participants, categories or images differ in the effects, and the result "
        "with slopes is the one that holds for others. With slopes, χ² divided by df is compared with the F "
        "distribution with df and the denominator df (from how many levels the error comes), and p (Holm) is "
        "corrected for the number of tests; without, p is that of χ², as in the paper. The intervals of contrasts are "
        f"uncorrected, and their p (Holm) is corrected for their number. {random_effects.RULE}"
    )


def has_intercepts_only(random: str) -> bool:
    """Say whether random effects are the intercepts alone."""
    return not formulas.has_slopes(f"y ~ {random}")


def are_left_out(data: Responses, analysis: NestedAnalysis) -> bool:
    """Say whether the models were planned without slopes although the design supports some.

    Of ratings the planned models alone are fitted: their verdict is the planned one.
    """
    return (
        data.task.is_scored
        and has_intercepts_only(analysis.requested_random)
        and random_effects.omission(data.frame, analysis.requested_random) is not None
    )


def can_compare(data: Responses, analysis: NestedAnalysis) -> bool:
    """Say whether there are results with slopes to compare with those without; not of ratings."""
    if not data.task.is_scored:
        return False
    return not has_intercepts_only(analysis.requested_random) or are_left_out(data, analysis)


def list_tests(table: pd.DataFrame, *, with_slopes: bool = False) -> list[RatioTest]:
    """Return the tests in a table of `compare`: with slopes, or with intercepts only."""
    rows = table[table["df"].notna() | table["chisq"].notna()]
    chosen = rows.drop_duplicates("result", keep="first" if with_slopes else "last")
    made = []
    for row in chosen.astype(object).where(chosen.notna(), None).to_dict("records"):
        larger, smaller = str(row["result"]).split(" vs ")
        numbers = (row["p"], row["df2"], row["p_holm"], row["f"])
        made.append(RatioTest(smaller, larger, row["chisq"], int(row["df"]), *numbers))
    return made


def list_contrasts(table: pd.DataFrame) -> pd.DataFrame:
    """Return the contrasts in a table of `compare` with random slopes, under the names that contrasts have."""
    rows = table[table["df"].isna() & table["chisq"].isna()]
    return rows.drop_duplicates("result", keep="first").rename(columns={"result": "contrast"}).reset_index(drop=True)


class SignificantContrasts(NamedTuple):
    """The contrasts with p below a level: how many of how many with random slopes, their names if few; and without."""

    with_slopes: str
    names: str
    without: str


def count_contrasts(table: pd.DataFrame, level: float) -> SignificantContrasts | None:
    """Count the contrasts with p below `level`, with random slopes and without; None where there is none."""
    rows = table[table["points"].notna()]
    with_slopes, without = (
        rows.drop_duplicates("result", keep=which).set_index("result")["p_holm"] < level for which in ("first", "last")
    )
    if not (without | with_slopes).any():
        return None
    left = with_slopes.index[with_slopes]
    names = "; ".join(map(write_whole_contrast, left)) if len(left) <= MOST_NAMED else ""
    return SignificantContrasts(f"{len(left)} of {len(with_slopes)}", names, f"{without.sum()} of {len(without)}")


def describe_contrasts(table: pd.DataFrame, level: float) -> str | None:
    """Say in a sentence what `count_contrasts` counts; None where there is no such contrast."""
    counted = count_contrasts(table, level)
    if counted is None:
        return None
    return (
        f"Contrasts with p (Holm) below {alpha_text(level)}: {counted.with_slopes} with random slopes"
        f"{f' ({counted.names})' if counted.names else ''}; with random intercepts only, as in the paper, "
        f"{counted.without}."
    )


def compare(
    data: Responses,
    analysis: NestedAnalysis,
    fixed: Mapping[str, str] = nested.FIXED,
    wanted: Sequence[Contrast] | None = None,
    *,
    level: float = 0.95,
) -> pd.DataFrame:
    """Tabulate each test and contrast with random slopes, then with intercepts only: `analysis` and its counterpart.

    Parameters
    ----------
    wanted
        Contrasts, those with placebos among them; if None, the ones of a study without a plan.

    Returns
    -------
    pandas.DataFrame
        result, random_effects, chisq, df, df2 and f (of tests), accuracy_more, accuracy_less, points, points_low,
        points_high (of contrasts), p (of tests), p_holm (corrected for the number of contrasts, and with slopes of
        tests, by Holm's method).

    Raises
    ------
    ForetellError
        The design supports no slopes, or there are too many random effects.
    """
    plain = has_intercepts_only(analysis.requested_random)
    other = random_effects.sensible(data.frame) if plain else random_effects.INTERCEPTS
    if plain and not formulas.has_slopes(f"y ~ {other}"):
        raise ForetellError("This design supports no random slopes of trial types or explanations.")
    named = random_effects.split(fixed)[0]
    counterpart = nested.analyze(data, fixed=named, random=other, tests="corrected" if plain else "chi_square")
    pair = [counterpart, analysis] if plain else [analysis, counterpart]
    asked = placebos.list_all_default_contrasts(data) if wanted is None else wanted
    parts = [_tabulate_analysis(data, one, asked, level) for one in pair]
    order = {name: k for k, name in enumerate(parts[0]["result"])}
    both = pd.concat(parts, ignore_index=True)
    return both.sort_values("result", key=lambda names: names.map(order), kind="stable", ignore_index=True)


def _tabulate_analysis(
    data: Responses, analysis: NestedAnalysis, wanted: Sequence[Contrast], level: float
) -> pd.DataFrame:
    tests = pd.DataFrame(
        [(t.name, t.chisq, t.df, t.df2, t.f, t.p, t.p_holm) for t in analysis.tests],
        columns=["result", "chisq", "df", "df2", "f", "p", "p_holm"],
    ).astype(dict.fromkeys(("chisq", "df", "df2", "f", "p", "p_holm"), np.float64))
    made = placebos.together(data, analysis.largest, wanted, level=level).table.rename(columns={"contrast": "result"})
    made = made.reindex(columns=["result", *ACCURACIES, "points", "points_low", "points_high", "p_holm"])
    table = pd.concat([tests, made] if len(made) else [tests], ignore_index=True)
    return table.assign(random_effects=analysis.random).reindex(columns=list(COLUMNS))


def _compare(study: AnalysedStudy) -> TableAndFigure:
    """Compare what the plan names, at its level."""
    if study.compared is not None:
        return study.compared, None
    if study.plan is None:
        return compare(study.data, study.fitted_models), None
    plan = study.plan.plan
    wanted, level = planned.list_contrasts(plan), 1 - study.plan.level
    return compare(study.data, study.fitted_models, plan.models, wanted, level=level), None


def compute_table(study: AnalysedStudy) -> pd.DataFrame | None:
    """Return the table of `compare` for a study; None where there is nothing to compare."""
    if not can_compare(study.data, study.fitted_models):
        return None
    try:
        return _compare(study)[0]
    except ForetellError:
        return None


ANALYSIS = ExploratoryAnalysis("With and without random slopes", _explain, _compare, has_models)
