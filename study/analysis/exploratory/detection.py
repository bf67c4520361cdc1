"""Signal detection: do explanations help participants to detect the AI's errors, or only lower their trust?

"The AI is wrong here" is a signal to be detected. It is there on the trials where the AI errs, and participants report
it by predicting something other than the truth. Sensitivity d' = z(hits) - z(false alarms) is how well they tell the
two apart; criterion c = -(z(hits) + z(false alarms)) / 2 is how unwilling they are to report it (Green & Swets, 1966;
Macmillan & Creelman, 2005, ch. 1-2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.stats import t

from core.errors import ForetellError
from study.analysis.exploratory import groups
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, with_figure
from study.analysis.means.adjustment import holm
from study.analysis.models import denominators, estimability, random_effects, reduction
from study.analysis.models.records import Floats, MixedModel
from study.analysis.responses import accuracies
from study.analysis.responses.faults import name_task
from study.analysis.words.headings import DETECTION_MEASURES
from study.conditions import format_condition


def conditions(frame: pd.DataFrame, model: MixedModel | None = None, *, level: float = 0.95) -> pd.DataFrame:
    """Return the hierarchical estimate: d' and criterion of each condition, from one mixed model over all responses.

    Parameters
    ----------
    model
        Of `fit`, where the responses were fitted already.

    Returns
    -------
    pandas.DataFrame
        condition, dprime, dprime_se, dprime_low, dprime_high, and the same of criterion; missing where a condition
        has no finite estimate (`describe_absent`).
    """
    model, order = model or fit(frame), accuracies.order(frame)
    rows = [
        {"condition": name}
        | {
            k: v
            for m in DETECTION_MEASURES
            for k, v in _measure(model, _weights(model, order, name, m), m, level).items()
        }
        for name in order
    ]
    return pd.DataFrame(rows)


def differences(frame: pd.DataFrame, model: MixedModel | None = None, *, level: float = 0.95) -> pd.DataFrame:
    """Compare each condition with the first: measure, contrast, difference, se, low, high, p, p_holm (all rows)."""
    model, order = model or fit(frame), accuracies.order(frame)
    rows = []
    for measure in DETECTION_MEASURES:
        first = _weights(model, order, order[0], measure)
        for name in order[1:]:
            weights = _weights(model, order, name, measure) - first
            difference = _measure(model, weights, "difference", level)
            statistic = abs(difference["difference"] / difference["difference_se"])
            p = float(2 * t.sf(statistic, _find_df(model, weights)))
            rows.append((measure, f"{name} - {order[0]}", *difference.values(), p))
    table = pd.DataFrame(rows, columns=["measure", "contrast", "difference", "se", "low", "high", "p"])
    return table.assign(p_holm=holm(table["p"].to_numpy()))


def fit(frame: pd.DataFrame) -> MixedModel:
    """Fit the probit mixed model of DeCarlo (1998, doi:10.1037/1082-989X.3.2.186).

    The probability of saying "wrong" is Phi(d' x - c), with x = 1/2 where the AI errs and -1/2 where it is right: the
    slope of x is d' and the intercept -c, both for each condition. The random effects are those of the default
    analysis, with x in place of trial types: each participant has a d' and c, and each category and image an effect of
    each condition, as far as the responses support them and reduced where singular (`random_effects.RULE`).
    """
    order = accuracies.order(frame)
    said = code_signals(frame)
    said = said.assign(condition=pd.Categorical(said["condition"], categories=order), shown=said["signal"] - 0.5)
    if said["signal"].nunique() < 2:
        raise ForetellError("Signal detection needs trials where the AI is right and where it is wrong.")
    fixed = "condition * shown" if len(order) > 1 else "shown"
    random = random_effects.by_condition(random_effects.sensible(said)).replace("trial_type", "shown")
    return reduction.fit_reduced(said, f"said ~ {fixed}", random, link="probit")[0]


def _weights(model: MixedModel, order: Sequence[str], name: str, measure: str) -> Floats:
    """Return a measure of a condition as a linear combination of the coefficients."""
    cells = pd.DataFrame({"condition": pd.Categorical([name] * 2, categories=list(order)), "shown": [0.5, -0.5]})
    present, absent = model.design_with_dropped(cells)
    return np.asarray(present - absent if measure == "dprime" else -(present + absent) / 2, dtype=np.float64)


def _measure(model: MixedModel, weights: Floats, name: str, level: float) -> dict[str, float]:
    estimates, ses = estimability.estimate_combinations(weights[None, :], model)
    estimate, se = float(estimates[0]), float(ses[0])
    half = float(t.ppf((1 + level) / 2, _find_df(model, weights))) * se
    return {name: estimate, f"{name}_se": se, f"{name}_low": estimate - half, f"{name}_high": estimate + half}


def _find_df(model: MixedModel, weights: Floats) -> float:
    return float(denominators.find_df(model, weights[None, : len(model.coefficients)])[0])


def figure(table: pd.DataFrame) -> go.Figure:
    """Plot the sensitivity and criterion by condition, from `conditions`."""
    words = {"dprime": "sensitivity d'", "criterion": "criterion c"}
    return groups.plot_measures(table, words, title="d' and c, in SDs (z)", line=0.0)


def describe_absent(frame: pd.DataFrame) -> str:
    """Say which conditions have no finite d' and why, in a sentence each; empty if all have one."""
    said = code_signals(frame).groupby(["condition", "signal"])["said"].mean().unstack("signal")
    sentences = []
    for name in accuracies.order(frame):
        extremes = [
            f"{'always' if said.loc[name, signal] else 'never'} reported an error where the AI {words}"
            for signal, words in ((1, "errs"), (0, "is right"))
            if said.loc[name, signal] in (0, 1)
        ]
        if extremes:
            sentences.append(
                f" {format_condition(name)}: no finite d' and criterion, because participants {' and '.join(extremes)}."
            )
    return "".join(sentences)


def code_signals(frame: pd.DataFrame) -> pd.DataFrame:
    """Add `signal` (the AI errs) and `said` (the response is something other than the truth), both 0/1.

    Raises
    ------
    ForetellError
        Responses are places; or there are more than two options, so that a wrong response may be something other than
        the truth, too.
    """
    task = name_task(frame)
    if task.place is not None:
        raise ForetellError(
            "d' does not apply to marked places: a mark is in the region or not, and reports no error of the AI. Read "
            "the marked places against chance."
        )
    if task.has_several:
        raise ForetellError(
            f"d' does not apply to {task.options} options: participants who report an error may still choose a wrong "
            "class, so d' would measure both. Read the accuracies, of which chance is "
            f"{task.chance:.0%}."
        )
    signal = (frame["trial_type"] != "std_correct").astype(int)
    return frame.assign(signal=signal, said=(frame["correct"] == signal).astype(int))


_READING = (
    "Sensitivity d' above 0: participants tell the AI's errors from its correct predictions. Criterion above 0: they "
    "miss its errors more often than they report errors that it does not make; below 0: less often. Both are in "
    "standard deviations of the evidence (z), with 95% intervals. Probit mixed model (DeCarlo, 1998): each participant "
    "has their own d' and criterion, and each category and image its own effect of each condition, as far as the "
    "responses support it; t with Satterthwaite's degrees of freedom."
)
_READING_DIFFERENCES = (
    "Differences in d' and criterion from the first condition, with 95% intervals; p by Holm's method is corrected for "
    "the number of rows. A change of the criterion alone is no change of sensitivity. Of 150 simulated studies of 160 "
    "participants who differ between trial types, with no effect on average, 12% had a significant row: large studies "
    "whose participants differ much need more than p here."
)


def _fit(study: AnalysedStudy) -> MixedModel:
    return fit(study.frame)


BY_CONDITION = ExploratoryAnalysis(
    "Signal detection: when the AI errs",
    lambda study: f"{_READING}{describe_absent(study.frame)}",
    lambda study: with_figure(conditions(study.frame, study.once(_fit)), figure),
    is_of_predictions=True,
)
DIFFERENCES = ExploratoryAnalysis(
    "Signal detection: differences between conditions",
    lambda study: f"{_READING_DIFFERENCES}{describe_absent(study.frame)}",
    lambda study: (differences(study.frame, study.once(_fit)), None),
    is_of_predictions=True,
)
