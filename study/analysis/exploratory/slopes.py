"""The same tests and contrasts with random intercepts only, as in the paper, and with random slopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from core.errors import ForetellError
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, TableAndFigure, has_models
from study.analysis.models import fitting, random_effects
from study.analysis.models import formula as formulas
from study.analysis.models.sentences import alpha_text, describe_p
from study.analysis.planned import analysis as planned
from study.analysis.planned import nested, placebos
from study.analysis.planned.contrasts import Contrast
from study.analysis.planned.nested import NestedAnalysis, RatioTest
from study.analysis.responses.reading import Responses
from study.analysis.words.wording import write_whole_contrast

_VERDICTS = {
    (True, True): "there is evidence with them too",
    (True, False): "this finding depends on leaving them out",
    (False, True): "whether there is evidence depends on the random effects",
    (False, False): "there is no clear evidence with them either",
}
"""By whether there is evidence without random slopes, and with them."""
COLUMNS = ("result", "random_effects", "chisq", "df", "points", "points_low", "points_high", "p", "p_holm")
TEST_COLUMNS = ("result", "random_effects", "chisq", "df", "p")
CONTRAST_COLUMNS = ("result", "random_effects", "points", "points_low", "points_high", "p_holm")
MOST_NAMED = 3
"""Contrasts that a sentence names."""


def _explain(study: AnalysedStudy) -> str:
    """Say what the models leave out, and how to read the comparison."""
    omission = random_effects.omission(study.frame, study.fitted_models.random)
    omission = omission or "These models have every slope the design supports."
    return (
        f"{omission} Where the two differ, participants or categories may differ in the effects, and the result with "
        f"slopes is the one that holds for other participants and categories. p is that of a test of the models; the "
        f"intervals of contrasts are uncorrected, and p (Holm) is corrected for their number. {random_effects.RULE}"
    )


def has_intercepts_only(random: str) -> bool:
    """Say whether random effects are the intercepts alone."""
    return random.replace(" ", "") == random_effects.INTERCEPTS.replace(" ", "")


def are_left_out(data: Responses, analysis: NestedAnalysis) -> bool:
    """Say whether the models have no slopes although the design supports some."""
    return has_intercepts_only(analysis.random) and random_effects.omission(data.frame, analysis.random) is not None


def describe(test: RatioTest, table: pd.DataFrame, level: float) -> str:
    """Say in one sentence whether a test comes out the same with random slopes, from the table of `compare`.

    p below `level` counts as evidence.
    """
    made = table[table["result"] == test.name].iloc[-1]
    if test.p is None or pd.isna(made["p"]):
        return "With random slopes this test cannot be made."
    if has_intercepts_only(str(made["random_effects"])):
        return "With random slopes the result is the same: their standard deviations are all estimated as 0."
    tested = f"χ²({made['df']:.0f}) = {made['chisq']:.2f}, {describe_p(made['p'])} (exploratory)"
    return f"With random slopes: {tested}: {_VERDICTS[test.p < level, bool(made['p'] < level)]}."


def describe_contrasts(table: pd.DataFrame, level: float) -> str | None:
    """Count the contrasts with p below `level`, and those left with random slopes; None where there is none."""
    rows = table[table["points"].notna()]
    without, with_slopes = (
        rows.drop_duplicates("result", keep=which).set_index("result")["p_holm"] < level for which in ("first", "last")
    )
    if not without.any():
        return None
    below = f"Contrasts with p (Holm) below {alpha_text(level)}: {without.sum()}"
    left = without.index[without & with_slopes]
    named = f": {'; '.join(map(write_whole_contrast, left))}" if 0 < len(left) <= MOST_NAMED else ""
    return f"{below}; with random slopes {len(left)} of them (exploratory){named}."


def compare(
    data: Responses,
    analysis: NestedAnalysis,
    fixed: Mapping[str, str] = nested.FIXED,
    wanted: Sequence[Contrast] | None = None,
    *,
    level: float = 0.95,
) -> pd.DataFrame:
    """Tabulate each test and contrast with the random effects of `analysis` and with the other choice.

    Parameters
    ----------
    wanted
        Contrasts, those with placebos among them; if None, the ones of a study without a plan.

    Returns
    -------
    pandas.DataFrame
        result, random_effects, chisq and df (of tests), points, points_low, points_high (of contrasts), p (of tests),
        p_holm (of contrasts, corrected for their number by Holm's method).

    Raises
    ------
    ForetellError
        The design supports no slopes, or there are too many random effects.
    """
    plain = has_intercepts_only(analysis.random)
    other = random_effects.sensible(data.frame) if plain else random_effects.INTERCEPTS
    if plain and not formulas.has_slopes(f"y ~ {other}"):
        raise ForetellError("This design supports no random slopes of trial types or explanations.")
    effects = fitting.count_effects(data.frame, f"correct ~ {other}")
    if effects > fitting.MOST_EFFECTS:
        raise ForetellError(
            f"{effects:,} random effects take too long for a comparison (at most {fitting.MOST_EFFECTS:,}): plan the "
            "slopes in the models of the plan ([analysis.models] in the study file)."
        )
    named = random_effects.split(fixed)[0]
    pair = [analysis, nested.analyze(data, fixed=named, random=other)]
    asked = placebos.list_all_default_contrasts(data) if wanted is None else wanted
    parts = [_tabulate_analysis(data, one, asked, level) for one in (pair if plain else reversed(pair))]
    order = {name: k for k, name in enumerate(parts[0]["result"])}
    both = pd.concat(parts, ignore_index=True)
    return both.sort_values("result", key=lambda names: names.map(order), kind="stable", ignore_index=True)


def _tabulate_analysis(
    data: Responses, analysis: NestedAnalysis, wanted: Sequence[Contrast], level: float
) -> pd.DataFrame:
    tests = pd.DataFrame(
        [(t.name, t.chisq, t.df, t.p) for t in analysis.tests],
        columns=["result", "chisq", "df", "p"],
    )
    made = placebos.together(data, analysis.largest, wanted, level=level).rename(columns={"contrast": "result"})
    made = made.reindex(columns=["result", "points", "points_low", "points_high", "p_holm"])
    table = pd.concat([tests, made] if len(made) else [tests], ignore_index=True)
    return table.assign(random_effects=analysis.random).reindex(columns=list(COLUMNS))


def _compare(study: AnalysedStudy) -> TableAndFigure:
    """Compare what the plan names, at its level."""
    if study.plan is None:
        return compare(study.data, study.fitted_models), None
    plan = study.plan.plan
    wanted, level = planned.list_contrasts(plan), 1 - study.plan.level
    return compare(study.data, study.fitted_models, plan.models, wanted, level=level), None


ANALYSIS = ExploratoryAnalysis("With and without random slopes", _explain, _compare, has_models)
