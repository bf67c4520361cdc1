"""How conditions move the levels of a scale, or confidence, where the AI was right and where it was wrong.

Cumulative logits (`study.analysis.models.ordinal`) use every level of the scale, where accuracy uses its sides only.
The random effects are those of the default analysis, with the AI's being wrong in place of trial types: each
participant has an own level and an own effect of it, and each category and image an effect of each condition, as far as
the responses support them and reduced where singular (`random_effects.RULE`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.stats import t

from core.errors import ForetellError
from study import plots
from study.analysis.exploratory.analysis import (
    AnalysedStudy,
    ExploratoryAnalysis,
    TableAndFigure,
    has_confidence,
    with_figure,
)
from study.analysis.exploratory.levels import has_levels, name_choices
from study.analysis.means.adjustment import holm
from study.analysis.models import denominators, estimability, random_effects, reduction
from study.analysis.models.records import Floats, MixedModel
from study.analysis.models.sentences import alpha_text, describe_p
from study.analysis.responses import accuracies
from study.conditions import format_condition

BINS = 10
"""Most levels that confidence is taken as; more distinct values are joined in bins of equal width."""
KINDS = ("AI right", "AI wrong")
ALL = "all trials"


def rate_choices(frame: pd.DataFrame, choices: Sequence[str]) -> pd.DataFrame:
    """Add `value` and `rank` to the responses on a scale, both the level: 1 is the lowest of the ``choices``."""
    rated = frame[frame["choice"].isin(list(choices))]
    level = rated["choice"].map({choice: k for k, choice in enumerate(choices, start=1)}).astype(np.int64)
    return rated.assign(value=level.astype(np.float64), rank=level)


def rate_confidence(frame: pd.DataFrame) -> pd.DataFrame:
    """Add `value`, the confidence, and `rank`, its place among the values or its bin, to responses that have one."""
    rated = frame[frame["confidence"].notna()]
    value = rated["confidence"].astype(np.float64)
    if value.nunique() > BINS:
        return rated.assign(value=value, rank=np.minimum((value * BINS).astype(np.int64), BINS - 1))
    return rated.assign(value=value, rank=pd.factorize(value, sort=True)[0])


def fit(rated: pd.DataFrame) -> tuple[pd.DataFrame, MixedModel]:
    """Fit the ordinal model of conditions, and where the AI was both right and wrong of their effects in each.

    Returns the rows as they were fitted, with the column `wrong`, and the model.

    Parameters
    ----------
    rated
        Responses with `rank`, as of `rate_choices`.

    Raises
    ------
    ForetellError
        All responses are in one condition, or the model has no finite estimates.
    """
    order = accuracies.order(rated)
    if len(order) < 2:
        raise ForetellError("An ordinal model of conditions needs responses in at least two of them.")
    coded = rated.assign(
        condition=pd.Categorical(rated["condition"], categories=order),
        wrong=(rated["trial_type"] != "std_correct").astype(np.int64),
    )
    fixed = "condition * wrong" if coded["wrong"].nunique() > 1 else "condition"
    random = random_effects.by_condition(random_effects.sensible(coded)).replace("trial_type", "wrong")
    model, _ = reduction.fit_reduced(coded, f"rank ~ {fixed}", random, family="ordinal")
    return coded, model


def tabulate(coded: pd.DataFrame, model: MixedModel, *, level: float = 0.95) -> pd.DataFrame:
    """Compare each condition with the first, where the AI was right and where it was wrong, from what `fit` returns.

    Returns
    -------
    pandas.DataFrame
        trials, condition, `responses`, mean (of `value`), odds_ratio (of a higher level), low, high, p, p_holm (over
        all rows). The first condition has a mean only.
    """
    order, kinds = list(coded["condition"].cat.categories), sorted(coded["wrong"].unique())
    rows, weights = [], []
    for kind in kinds:
        for name in order:
            own = coded.loc[(coded["wrong"] == kind) & (coded["condition"] == name), "value"]
            rows.append((KINDS[kind] if len(kinds) > 1 else ALL, name, len(own), float(own.mean())))
            more, less = model.design_with_dropped(make_cells(coded, [name, order[0]], wrong=kind))
            weights.append(more - less)
    made = pd.DataFrame(rows, columns=["trials", "condition", "responses", "mean"])
    compared = (made["condition"] != order[0]).to_numpy()
    estimates = _estimate(model, np.array(weights)[compared], level).set_axis(made.index[compared])
    return made.join(estimates)


def make_cells(coded: pd.DataFrame, conditions: Sequence[str], *, wrong: int) -> pd.DataFrame:
    """Make a row of predictors for each of some conditions, where the AI was right (0) or wrong (1)."""
    levels = coded["condition"].cat.categories
    return pd.DataFrame({"condition": pd.Categorical(conditions, categories=levels), "wrong": wrong})


def _estimate(model: MixedModel, weights: Floats, level: float) -> pd.DataFrame:
    estimate, se = estimability.estimate_combinations(weights, model)
    df = denominators.find_df(model, weights[:, : len(model.coefficients)])
    half = t(df).ppf((1 + level) / 2) * se
    p = 2 * t(df).sf(np.abs(estimate / se))
    limits = {"odds_ratio": estimate, "low": estimate - half, "high": estimate + half}
    return pd.DataFrame({name: np.exp(value) for name, value in limits.items()} | {"p": p, "p_holm": holm(p)})


def figure(table: pd.DataFrame) -> go.Figure:
    """Plot the odds ratios against the first condition, from `table`, on a logarithmic axis; at 1 nothing changed."""
    compared = table[table["odds_ratio"].notna()]
    drawn = plots.intervals(
        compared, x="condition", y="odds_ratio", by="trials", title="Odds ratio of a higher level", line=1.0
    )
    return drawn.update_yaxes(type="log")


def conclude(table: pd.DataFrame, level: float) -> str:
    """Say in a sentence what changed, from `table`, at a level of significance."""
    known = table[table["p_holm"].notna()]
    if known.empty:
        return "The data do not determine how conditions differ in the levels."
    changed = known[known["p_holm"] < level]
    first = format_condition(str(table["condition"].iloc[0])).lower()
    if changed.empty:
        return (
            f"No condition changed the levels detectably (against {first}: odds ratios from "
            f"{known['odds_ratio'].min():.2f} to {known['odds_ratio'].max():.2f}, every p (Holm) at or above "
            f"{alpha_text(level)})."
        )
    parts = [_describe(row, table) for _, row in changed.iterrows()]
    others = len(known) - len(changed)
    rest = f"; the other {others} did not change detectably" if others else ""
    return f"Against {first}, levels changed: {'; '.join(parts)}{rest}."


def _describe(row: pd.Series[float], table: pd.DataFrame) -> str:
    first = table[table["trials"] == row["trials"]].iloc[0]
    way = "higher" if row["odds_ratio"] > 1 else "lower"
    where = "" if row["trials"] == ALL else f" where the {row['trials'].replace('AI', 'AI was')}"
    return (
        f"{way} with {format_condition(str(row['condition'])).lower()}{where} (odds ratio {row['odds_ratio']:.2f} "
        f"[{row['low']:.2f}, {row['high']:.2f}], Holm-corrected {describe_p(row['p_holm'])}; mean {first['mean']:.2f} "
        f"to {row['mean']:.2f})"
    )


def is_rated(study: AnalysedStudy) -> bool:
    """Say whether participants gave levels of a scale, or their confidence."""
    return has_levels(study) or has_confidence(study)


def rate(study: AnalysedStudy) -> pd.DataFrame:
    """Add `value` and `rank` to the responses of a study: of its scale, or else of confidence."""
    choices = study.data.task.choices or ()
    return rate_choices(name_choices(study), choices) if has_levels(study) else rate_confidence(study.frame)


def _compute(study: AnalysedStudy) -> TableAndFigure:
    return with_figure(tabulate(*fit(rate(study))), figure)


def _explain(study: AnalysedStudy) -> str:
    if has_levels(study):
        choices = [choice.replace("_", " ") for choice in study.data.task.choices or ()]
        return f"Levels 1 ({choices[0]}) to {len(choices)} ({choices[-1]}). {READING}"
    return f"Confidence, from 0 to 1; its values, or tenths if there are more than {BINS}, are the levels. {READING}"


READING = (
    "Odds ratio of a higher level than in the first condition, the same at each level (proportional odds), with 95% "
    "intervals; above 1, levels are higher. Cumulative-logit mixed model: each participant has an own level and an own "
    "effect of the AI's being wrong, and each category and image its own effect of each condition, as far as the "
    "responses support it; t with Satterthwaite's degrees of freedom. p by Holm's method is corrected for the number "
    "of odds ratios. Means are of all responses in the row."
)

ANALYSIS = ExploratoryAnalysis(
    "Levels by condition: ordinal model",
    _explain,
    _compute,
    needs=is_rated,
    conclude=lambda study, table: conclude(table, study.level),
    is_of_levels=True,
)
