"""The Bayesian fit of the largest model: its differences, its parameters, and what priors and posterior predict."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from study import plots
from study.analysis.bayes import design as designs
from study.analysis.bayes import predictive, sampler
from study.analysis.bayes.posterior import HIGH, LOW, Posterior
from study.analysis.bayes.printing import EXPLANATION
from study.analysis.bayes.sampler import SamplerSettings
from study.analysis.exploratory import posteriors, residuals
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, has_models
from study.analysis.models import formula as formulas
from study.analysis.models.records import Floats
from study.analysis.planned import placebos
from study.analysis.words.cells import write_rounded
from study.analysis.words.wording import write_whole_contrast
from study.bundle import TYPE_LABELS

BAYES = "bayes"
"""The request by which a report has these analyses: `analyze --bayes`."""
COMPILE_S, ROW_S = 25.0, 0.035
"""Processor time of compiling the default model, and what each response adds to a fit."""
PRIOR_DRAWS = 1000
_SECOND = "Contrasts with conditions outside the two factors, such as placebos, are of a second fit."


def describe_differences(study: AnalysedStudy, table: pd.DataFrame) -> str:
    """Say which differences have an interval on one side of 0, and whether the fits are to be believed."""
    clear = table[(table["points_low"] > 0) | (table["points_high"] < 0)]
    named = "; ".join(_describe_row(row) for row in clear.to_dict("records"))
    count = f"{len(clear)} of {table['points'].notna().sum()}"
    said = [f"Differences whose 95% interval excludes 0: {count}{f' ({named})' if named else ''}."]
    for number, made in enumerate(posteriors.list_fits(study)):
        said += [_SECOND] * (number > 0) + [made.diagnostics.describe()]
    return " ".join(said)


def _describe_row(row: dict[str, object]) -> str:
    points, low, high = (write_rounded(float(str(row[name])), 1) for name in ("points", "points_low", "points_high"))
    return f"{write_whole_contrast(str(row['contrast']))}, {points} percentage points ({low} to {high})"


def draw_differences(table: pd.DataFrame) -> go.Figure:
    """Plot each difference with its interval."""
    shown = table[table["points"].notna()][::-1]
    bars = pd.DataFrame({"points": shown["points"], "low": shown["points_low"], "high": shown["points_high"]})
    names = [write_whole_contrast(str(name)) for name in shown["contrast"]]
    color = plots.PALETTE[0]
    figure = go.Figure(
        go.Scatter(
            x=bars["points"], y=names, error_x=plots.whiskers(bars, "points", color), mode="markers",
            marker={"color": color, "size": 10}, customdata=bars[["low", "high"]].to_numpy(),
            hovertemplate="%{y}: %{x:+.1f} points [%{customdata[0]:.1f}, %{customdata[1]:.1f}]<extra></extra>",
        )
    )  # fmt: skip
    figure.add_vline(x=0, line=plots.DOTTED, layer="below")
    plots.apply_layout(figure, "", percent=False)
    figure.update_layout(height=130 + 36 * len(names)).update_yaxes(showgrid=False, **plots.LABELS)
    return figure.update_xaxes(title="Difference in accuracy<br>(percentage points)", gridcolor=plots.GRID)


def measure_accuracies(frame: pd.DataFrame, correct: Floats) -> dict[str, Floats]:
    """Measure of (count, n) responses, each a value (count,): accuracy of trial types, and how much groups differ."""

    def average(columns: list[str]) -> Floats:
        codes = frame.groupby(columns, observed=True, sort=False).ngroup().to_numpy()
        shares = np.eye(int(codes.max()) + 1)[codes] / np.bincount(codes)
        return np.asarray(correct @ shares, dtype=np.float64)

    kinds = [kind for kind in TYPE_LABELS if (frame["trial_type"] == kind).any()]
    accuracies = {
        f"Accuracy, {TYPE_LABELS[kind]}": correct[:, (frame["trial_type"] == kind).to_numpy()].mean(axis=1)
        for kind in kinds
    }
    return accuracies | {
        "Largest difference between conditions": np.ptp(average(["saliency", "examples"]), axis=1),
        "Participants: spread (SD)": average(["participant"]).std(axis=1),
    }


def compute_prior(study: AnalysedStudy) -> pd.DataFrame:
    """Tabulate `property`, observed, and the mean and 95% of what responses drawn from the priors have.

    Raises
    ------
    ForetellError
        NumPyro is not installed.
    """
    design = designs.build(study.frame, posteriors.write_formula(study))
    drawn = sampler.sample_prior(design, posteriors.choose_priors(study), PRIOR_DRAWS, study.seed)
    responses = predictive.draw_responses(design, drawn, PRIOR_DRAWS, study.rng, study.progress)
    own = measure_accuracies(study.frame, study.frame["correct"].to_numpy(dtype=np.float64)[None])
    rows = [
        (name, float(own[name][0]), float(values.mean()), *np.quantile(values, (LOW, HIGH)))
        for name, values in measure_accuracies(study.frame, responses).items()
    ]
    return pd.DataFrame(rows, columns=["property", "observed", "drawn", "drawn_from", "drawn_to"])


def describe_prior(table: pd.DataFrame) -> str:
    """Say what the priors imply, and which observed values they hardly allow."""
    kinds = table["property"].str.startswith("Accuracy")
    low, high = table.loc[kinds, "drawn_from"].min(), table.loc[kinds, "drawn_to"].max()
    apart, spread = (row for row in table[~kinds].to_dict("records"))
    outside = table[(table["observed"] < table["drawn_from"]) | (table["observed"] > table["drawn_to"])]
    said = (
        f"95% of draws from the priors have accuracies between {low:.0%} and {high:.0%}, conditions that differ by up "
        f"to {100 * apart['drawn_to']:.0f} percentage points, and a standard deviation between participants of "
        f"{100 * spread['drawn_from']:.0f} to {100 * spread['drawn_to']:.0f} points."
    )
    if outside.empty:
        return f"{said} All observed values are among them."
    named = "; ".join(f"{row['property']} ({row['observed']:.1%})" for row in outside.to_dict("records"))
    return f"{said} Outside are: {named}: compare with wider priors."


def draw_prior(table: pd.DataFrame) -> go.Figure:
    """Plot the 95% of the draws as bars, and the observed values."""
    shown = table[::-1]
    figure = go.Figure(
        go.Bar(
            x=shown["drawn_to"] - shown["drawn_from"], base=shown["drawn_from"], y=shown["property"], orientation="h",
            width=0.45, marker={"color": plots.GRID}, name="95% of draws from the priors", hoverinfo="skip",
        )
    )  # fmt: skip
    marker = {"color": plots.PALETTE[0], "symbol": plots.MARKS[0], "size": 10}
    figure.add_scatter(x=shown["observed"], y=shown["property"], mode="markers", marker=marker, name="the responses")
    plots.apply_layout(figure, "", percent=False)
    figure.update_layout(height=150 + 30 * len(shown)).update_yaxes(showgrid=False, type="category", **plots.LABELS)
    return figure.update_xaxes(title="Accuracy, or difference in accuracy", tickformat=".0%", gridcolor=plots.GRID)


def compute_checks(study: AnalysedStudy) -> pd.DataFrame:
    """Compare the responses with draws from the posterior, as of `study.analysis.exploratory.residuals.compare`."""
    made = posteriors.fit(study)
    drawn = predictive.draw_responses(made.design, made.draws, residuals.DRAWS, study.rng, study.progress)
    return residuals.compare(study, drawn)


def estimate_seconds(study: AnalysedStudy) -> float:
    """Estimate the processor time of the fit of the two factors, s."""
    return _estimate(study, len(study.frame))


def estimate_differences(study: AnalysedStudy) -> float:
    """Estimate the processor time of the fits that the contrasts need, s."""
    second = any(map(placebos.is_separate, posteriors.list_wanted(study)))
    return estimate_seconds(study) + second * _estimate(study, len(study.data.every))


def _estimate(study: AnalysedStudy, responses: int) -> float:
    settings, usual = posteriors.choose_settings(study), SamplerSettings()
    share = (settings.warmup + settings.draws) / (usual.warmup + usual.draws)
    return COMPILE_S + ROW_S * responses * share


def _explain(study: AnalysedStudy, head: str) -> str:
    """Say what the numbers of the fit of the two factors are."""
    return f"{head} {_describe_fit(posteriors.fit(study))}"


def _explain_differences(study: AnalysedStudy) -> str:
    first, *second = map(_describe_fit, posteriors.list_fits(study))
    return " ".join([_DIFFERENCES, first, *(f"{_SECOND} {one}" for one in second)])


def _describe_fit(made: Posterior) -> str:
    """Describe model, priors and sampler."""
    return f"Model: {made.design.model.formula}. {made.describe_priors} {made.settings.describe()}"


def _explain_prior(study: AnalysedStudy) -> str:
    text, priors = posteriors.write_formula(study), posteriors.choose_priors(study)
    described = priors.describe(
        correlated=any(term.correlated and term.columns != "1" for term in formulas.terms(text))
    )
    return f"{_PRIOR} Model: {text}. {described} {PRIOR_DRAWS:,} draws from the priors, random seed {study.seed}."


_DIFFERENCES = (
    "Posterior means of the differences in accuracy, averaged over the random effects, with equal-tailed 95% "
    "intervals. P(above 0): probability that the difference is positive; P(within): that it lies between the plan's "
    "equivalence bounds. A cell with only correct or only incorrect responses has an interval too, whose width depends "
    "on the priors."
)
_PRIOR = (
    "What the model expects before it sees a response, compared with the responses: priors that allow only some "
    "accuracies decide the result, and ones that put most of it at 0% and 100% are no less of a claim."
)
DIFFERENCES = ExploratoryAnalysis(
    "Bayesian fit: differences",
    _explain_differences,
    lambda study: (table := posteriors.tabulate_differences(study), draw_differences(table)),
    has_models,
    describe_differences,
    estimate_differences,
    BAYES,
    is_drawn=True,
)
PARAMETERS = ExploratoryAnalysis(
    "Bayesian fit: parameters",
    partial(
        _explain,
        head=f"{EXPLANATION} R-hat near 1: the chains agree. Effective draws: in "
        "bulk, and at the limits of the interval.",
    ),
    lambda study: (posteriors.fit(study).table, None),
    has_models,
    lambda study, _: posteriors.fit(study).diagnostics.describe(),
    estimate_seconds,
    BAYES,
    is_drawn=True,
)
PRIOR = ExploratoryAnalysis(
    "Bayesian fit: what the priors predict",
    _explain_prior,
    lambda study: (table := compute_prior(study), draw_prior(table)),
    has_models,
    lambda _, table: describe_prior(table),
    lambda _: COMPILE_S / 5,
    BAYES,
)
CHECKS = ExploratoryAnalysis(
    "Bayesian fit: responses drawn from the posterior",
    f"As “{residuals.CHECKS.title}”, with parameters drawn from the posterior: what the estimates leave open widens "
    f"the draws. {residuals.CHECKS.says}",
    lambda study: (table := compute_checks(study), residuals.draw_properties(table)),
    has_models,
    lambda study, table: f"{residuals.describe(table, study.level)} {posteriors.fit(study).diagnostics.describe()}",
    estimate_seconds,
    BAYES,
    is_drawn=True,
)
