"""Do explanations make people better at telling when the AI errs, or only more distrustful?

"The AI is wrong here" is a signal to be detected. It is there on the trials where the AI errs, and a person says so by
predicting something else than the truth. Sensitivity d' = z(hits) - z(false alarms) is how well she tells the two
apart; criterion c = -(z(hits) + z(false alarms)) / 2 is how unwilling she is to say it (Green & Swets, 1966;
Macmillan & Creelman, 2005, ch. 1-2).
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.stats import norm

from core.errors import ForetellError
from study.analysis import bootstrap, mixed, plots
from study.analysis.records import MixedModel

_PROBIT = 1.702
"""Log-odds per unit of z: the constant that brings the logistic curve within .01 of the normal one (Lord & Novick,
1968). glmm fits the logit; d' and c are stated in units of z."""


def people(frame: pd.DataFrame) -> pd.DataFrame:
    """condition, participant, hits, false_alarms (rates), dprime, criterion of each person.

    Rates are (count + 1/2) / (trials + 1), so that nobody is infinitely sensitive (Hautus, 1995,
    doi:10.3758/BF03203619). People who saw no error of the AI, or nothing but errors, are left out.
    """
    said = _said_wrong(frame).groupby(["condition", "participant", "signal"], observed=True)["said"]
    counts = said.agg(["sum", "count"]).unstack("signal").dropna()
    if counts.empty or counts["sum"].shape[1] < 2:
        raise ForetellError("Signal detection needs people who saw the AI right and wrong: one kind is missing.")
    rate = (counts["sum"] + 0.5) / (counts["count"] + 1.0)
    hits, alarms = norm.ppf(rate[1]), norm.ppf(rate[0])
    table = pd.DataFrame(
        {"hits": rate[1], "false_alarms": rate[0], "dprime": hits - alarms, "criterion": -(hits + alarms) / 2}
    )
    return table.reset_index()


def conditions(frame: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """The hierarchical estimate: d' and criterion of each condition, from one mixed model over all answers.

    log-odds of saying "wrong" ~ condition x signal, with each person's own bias and sensitivity and each category's
    own bias: the probit model of DeCarlo (1998, doi:10.1037/1082-989X.3.2.186) by way of the logit, divided by 1.702.

    Returns
    -------
    pandas.DataFrame
        condition, dprime, dprime_se, dprime_low, dprime_high, and the same of criterion; missing where a condition
        has no finite estimate (nobody there ever, or always, said "wrong").
    """
    model = fit(frame)
    order = bootstrap.order(frame)
    rows = []
    for name in order:
        row: dict[str, object] = {"condition": name}
        for measure in ("dprime", "criterion"):
            row |= _measure(model, order, name, measure, level)
        rows.append(row)
    return pd.DataFrame(rows)


def fit(frame: pd.DataFrame) -> MixedModel:
    """The mixed model behind `conditions`; the signal is coded -1/2 and 1/2, so intercepts are biases."""
    order = bootstrap.order(frame)
    said = _said_wrong(frame)
    said = said.assign(condition=pd.Categorical(said["condition"], categories=order), shown=said["signal"] - 0.5)
    if said["signal"].nunique() < 2:
        raise ForetellError("Signal detection needs trials where the AI is right and where it is wrong.")
    fixed = "condition * shown" if len(order) > 1 else "shown"
    return mixed.fit(said, f"said ~ {fixed} + (shown|participant) + (1|category)")


def _measure(model: MixedModel, order: list[str], name: str, measure: str, level: float) -> dict[str, float]:
    """One measure of one condition, a linear combination of the coefficients."""
    cells = pd.DataFrame({"condition": pd.Categorical([name] * 2, categories=order), "shown": [0.5, -0.5]})
    present, absent = model.design(cells)
    weights = (present - absent if measure == "dprime" else -(present + absent) / 2) / _PROBIT
    finite = np.array([c.term not in model.diverging for c in model.coefficients])
    inner = weights[finite] if not weights[~finite].any() else np.full(int(finite.sum()), np.nan)
    estimate = float(inner @ np.array([c.estimate for c in model.coefficients])[finite])
    se = math.sqrt(float(inner @ model.covariance[np.ix_(finite, finite)] @ inner))
    half = float(norm.ppf((1 + level) / 2)) * se
    return {
        measure: estimate,
        f"{measure}_se": se,
        f"{measure}_low": estimate - half,
        f"{measure}_high": estimate + half,
    }


def figure(table: pd.DataFrame) -> go.Figure:
    """Sensitivity and criterion by condition, from `conditions`."""
    parts = [
        table[["condition"]].assign(
            measure=words, value=table[name], low=table[f"{name}_low"], high=table[f"{name}_high"]
        )
        for name, words in (("dprime", "sensitivity d'"), ("criterion", "criterion c"))
    ]
    return plots.intervals(pd.concat(parts), x="condition", y="value", by="measure", title="units of z", line=0.0)


def _said_wrong(frame: pd.DataFrame) -> pd.DataFrame:
    """With `signal` (the AI errs) and `said` (the person predicts something else than the truth), both 0/1."""
    signal = (frame["trial_type"] != "std_correct").astype(int)
    return frame.assign(signal=signal, said=(frame["correct"] == signal).astype(int))
