"""Conditions within participants: do responses change over the periods, and with the condition of the period before?

A cross-over trial (Jones & Kenward, 2014, Design and Analysis of Cross-Over Trials, ch. 5): to the largest of the
nested models are added an effect of each period and a first-order carry-over effect of each condition on the period
after it, which is 0 in the first. Each is tested by a likelihood ratio in the presence
of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.stats import t

from core.errors import ForetellError
from core.names import lower_first
from study import plots
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, has_models
from study.analysis.models import denominators, mixed, random_effects
from study.analysis.models import formula as formulas
from study.analysis.models.records import MixedModel
from study.analysis.models.sentences import describe_p
from study.analysis.planned.nested import correct, ratio_test
from study.analysis.responses import accuracies
from study.analysis.responses.periods import PERIOD, PREVIOUS, add_previous_conditions, has_periods
from study.analysis.responses.reading import Responses
from study.conditions import format_condition

PERIODS, CARRY_OVER = "Period", "Condition before"
FIRST_ALONE = "First period alone"
COLUMNS = ["result", "chisq", "chisq_df", "df2", "f", "p", "p_holm", "estimate", "se", "low", "high"]


def tabulate(data: Responses, largest: MixedModel, *, level: float = 0.95) -> pd.DataFrame:
    """Tabulate the tests of periods and of carry-over, their effects, and the conditions in the first period alone.

    Parameters
    ----------
    data
        Responses with periods (`study.analysis.responses.periods.has_periods`).
    largest
        The model of their two factors to which the effects are added, with its random effects.

    Returns
    -------
    pandas.DataFrame
        result, chisq, chisq_df, df2, f, p, p_holm (of both tests), estimate, se, low, high (of effects, log-odds).
    """
    coded, periods, carried = _code(data)
    whole = _add(coded, largest, [*periods, *carried])
    smaller = {PERIODS: _add(coded, largest, carried), CARRY_OVER: _add(coded, largest, periods)}
    tests = correct([ratio_test(name, one, "", whole) for name, one in smaller.items()])
    rows: list[dict[str, object]] = [
        dict(zip(COLUMNS, (name, one.chisq, one.df, one.df2, one.f, one.p, one.p_holm), strict=False))
        for name, one in zip(smaller, tests, strict=True)
    ]
    rows += _list_effects(whole, {**periods, **carried}, level)
    return pd.DataFrame([*rows, *_list_first(coded, level)], columns=COLUMNS)


def _code(data: Responses) -> tuple[pd.DataFrame, dict[str, str], dict[str, str]]:
    """Code periods and previous conditions as columns of 0 and 1, each with its name in words.

    Previous conditions are compared with the first one, and 0 in the first period.
    """
    order, coded = accuracies.order(data.every), add_previous_conditions(data.every).iloc[: len(data.frame)]
    numbers = sorted(coded[PERIOD].unique())
    first = numbers[0]
    periods = {f"period_{n:g}": f"Period {n:g} compared with {first:g}" for n in numbers[1:]}
    before = lower_first(format_condition(order[0]))
    names = {f"after_{k}": name for k, name in enumerate(order[1:], 1)}
    columns = {key: (coded[PERIOD] == n).astype(int) for key, n in zip(periods, numbers[1:], strict=True)}
    columns |= {key: (coded[PREVIOUS] == name).astype(int) for key, name in names.items()}
    carried = {
        key: f"After {lower_first(format_condition(name))} compared with after {before}" for key, name in names.items()
    }
    return coded.assign(**columns), periods, carried


def _add(frame: pd.DataFrame, model: MixedModel, columns: Iterable[str]) -> MixedModel:
    """Fit a model with more columns."""
    fixed = formulas.extract_fixed_effects(model.formula)
    random = formulas.random(model.formula)
    return mixed.fit(
        frame, f"correct {fixed} + {' + '.join(columns)}{random}", near=model.effects, has_df=bool(model.parts)
    )


def _list_effects(model: MixedModel, names: dict[str, str], level: float) -> Iterator[dict[str, object]]:
    """List the coefficients with these names, as far as the responses determine them."""
    for place, one in enumerate(model.coefficients):
        if one.term not in names or one.se is None:
            continue
        df = float(denominators.find_df(model, np.eye(len(model.coefficients))[[place]])[0])
        half = float(t.ppf((1 + level) / 2, df)) * one.se
        p = float(2 * t.sf(abs(one.estimate / one.se), df))
        limits = {"low": one.estimate - half, "high": one.estimate + half}
        yield {"result": names[one.term], "p": p, "estimate": one.estimate, "se": one.se, **limits}


def _list_first(coded: pd.DataFrame, level: float) -> list[dict[str, object]]:
    """List the effects of conditions in the first period, before which nothing was shown; none that cannot be fitted.

    Each participant is in one condition there, so intercepts of participants and categories are all it supports.
    """
    alone = coded[coded[PERIOD] == coded[PERIOD].min()]
    order = accuracies.order(coded)
    names = {
        f"condition{name}": f"{FIRST_ALONE}: {lower_first(format_condition(name))} compared with "
        f"{lower_first(format_condition(order[0]))}"
        for name in order[1:]
    }
    alone = alone.assign(condition=pd.Categorical(alone["condition"], categories=order))
    try:
        model = mixed.fit(alone, f"correct ~ trial_type + condition + {random_effects.INTERCEPTS}")
    except ForetellError:
        return []
    return list(_list_effects(model, names, level))


def tabulate_periods(frame: pd.DataFrame) -> pd.DataFrame:
    """Tabulate condition, period, `responses`, accuracy, low, high (95%, over participants)."""
    rows = []
    for name in accuracies.order(frame):
        right, given = accuracies.count_by_participant(frame[frame["condition"] == name], PERIOD)
        share, low, high = accuracies.compute_intervals(right.to_numpy(), given.to_numpy(), 0.95)
        rows += [
            (name, float(period), int(given[period].sum()), float(share[k]), float(low[k]), float(high[k]))
            for k, period in enumerate(right.columns)
        ]
    return pd.DataFrame(rows, columns=["condition", PERIOD, "responses", "accuracy", "low", "high"])


def figure(numbers: pd.DataFrame) -> go.Figure:
    """Plot the accuracy in each period, one line for each condition, from `tabulate_periods`."""
    made = plots.curves(numbers, x=PERIOD, y="accuracy", by="condition", title="Correct responses", x_title="Period")
    return made.update_xaxes(dtick=1)


def conclude(table: pd.DataFrame, level: float) -> str:
    """Say in words what both tests of `tabulate` say, and what follows for comparisons of conditions."""
    p = {name: table.loc[table["result"] == name, "p_holm"].iloc[0] for name in (PERIODS, CARRY_OVER)}
    changed, carried = (pd.notna(p[name]) and p[name] < level for name in (PERIODS, CARRY_OVER))
    said = [
        f"Accuracy changes over the periods (Holm-corrected {describe_p(p[PERIODS])}): as each condition is in each "
        "period equally often, this does not favour a condition."
        if changed
        else f"There is no evidence that accuracy changes over the periods ({_write(p[PERIODS])})."
    ]
    if carried:
        said.append(
            f"Responses depend on the condition of the period before (Holm-corrected {describe_p(p[CARRY_OVER])}), so "
            "that the other results mix a condition with what was shown before it. Report next to them the first "
            "period alone, before which nothing was shown."
        )
    else:
        said.append(
            f"There is no evidence of carry-over from the condition of the period before ({_write(p[CARRY_OVER])}). "
            "That supports comparisons over all periods, but does not prove them free of it: a small carry-over needs "
            "many participants to be detected."
        )
    return " ".join(said)


def _write(p: float) -> str:
    return "it cannot be tested" if pd.isna(p) else f"Holm-corrected {describe_p(p)}"


def explain(study: AnalysedStudy) -> str:
    """Say how to read the table; of two conditions, also what their design cannot tell apart."""
    said = (
        "Each participant saw every condition, one in each period. The largest of the models above gets an effect of "
        "each period and of the condition of the period before (carry-over; Jones & Kenward, 2014); each is tested "
        "against the model with the other alone. Effects are in log-odds, with 95% intervals."
    )
    if study.frame["condition"].nunique() == 2:
        said += (
            " With two conditions, carry-over is a difference between participants with either order, and the test has "
            "little power."
        )
    return said


def _compute(study: AnalysedStudy) -> tuple[pd.DataFrame, go.Figure]:
    return tabulate(study.data, study.fitted_models.largest), figure(tabulate_periods(study.data.every))


ANALYSIS = ExploratoryAnalysis(
    "Order of conditions: periods and carry-over",
    explain,
    _compute,
    needs=lambda study: has_models(study) and has_periods(study.data.every),
    conclude=lambda study, table: conclude(table, study.level),
)
