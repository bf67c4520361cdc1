"""The Bayesian fit of the largest model: its differences, its parameters, and what priors and posterior predict."""

from __future__ import annotations

import threading
import weakref
from functools import partial

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.errors import ForetellError
from study import plots
from study.analysis.bayes import contrasts, posterior, predictive, sampler
from study.analysis.bayes import design as designs
from study.analysis.bayes.posterior import HIGH, LOW, Posterior
from study.analysis.bayes.printing import EXPLANATION
from study.analysis.bayes.priors import Priors
from study.analysis.bayes.sampler import SamplerSettings
from study.analysis.exploratory import residuals
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis, has_models
from study.analysis.models import formula as formulas
from study.analysis.models.records import Floats
from study.analysis.planned.analysis import list_contrasts
from study.analysis.planned.contrasts import FACTORS, Contrast, list_default, select_testable
from study.analysis.words.cells import write_rounded
from study.analysis.words.wording import write_whole_contrast
from study.bundle import TYPE_LABELS
from study.plan.equivalence import Bounds

BAYES = "bayes"
"""The request by which a report has these analyses: `analyze --bayes`."""
COMPILE_S, ROW_S = 25.0, 0.035
"""Processor time of compiling the default model, and what each response adds to a fit."""
PRIOR_DRAWS = 1000


class _LastFit:
    """The last fit, which four analyses of the same models share."""

    lock = threading.Lock()
    models: weakref.ref[object] | None = None
    asked: tuple[Priors, SamplerSettings] | None = None
    fit: Posterior | None = None


def fit(study: AnalysedStudy) -> Posterior:
    """Fit the largest model with all random effects that were asked for: priors keep those near 0 proper.

    Raises
    ------
    ForetellError
        NumPyro is not installed.
    """
    models, asked = study.fitted_models, (choose_priors(study), choose_settings(study))
    with _LastFit.lock:
        last, is_same = _LastFit.fit, _LastFit.models is not None and _LastFit.models() is models
        if last is None or not is_same or _LastFit.asked != asked:
            priors, settings = asked
            last = posterior.fit(
                study.frame, write_formula(study), priors=priors, settings=settings, progress=study.progress
            )
            _LastFit.models, _LastFit.asked, _LastFit.fit = weakref.ref(models), asked, last
        return last


def write_formula(study: AnalysedStudy) -> str:
    """Write the largest model with the random effects before a singular fit was reduced."""
    models = study.fitted_models
    return f"correct {formulas.extract_fixed_effects(models.largest.formula)} + {models.requested_random}"


def choose_priors(study: AnalysedStudy) -> Priors:
    """Return the plan's priors, and the default for what it does not state."""
    return Priors() if study.plan is None else Priors.of_plan(study.plan.plan)


def choose_settings(study: AnalysedStudy) -> SamplerSettings:
    """Return how the study's posterior is drawn from.

    Raises
    ------
    ForetellError
        Too few draws.
    """
    return SamplerSettings(draws=study.draws, seed=study.seed)


def find_bounds(study: AnalysedStudy) -> Bounds | None:
    """Return the plan's equivalence bounds."""
    return None if study.plan is None else study.plan.plan.equivalence


def compute_differences(study: AnalysedStudy) -> pd.DataFrame:
    """Tabulate the contrasts between conditions of the two factors, as of `study.analysis.bayes.contrasts.tabulate`.

    Raises
    ------
    ForetellError
        The fit is not to be believed.
    """
    made = fit(study)
    if not made.diagnostics.is_reliable:
        raise ForetellError(made.diagnostics.describe())
    return contrasts.tabulate(made, _list_contrasts(study), find_bounds(study))


def _list_contrasts(study: AnalysedStudy) -> list[Contrast]:
    asked = list_default(study.frame) if study.plan is None else list_contrasts(study.plan.plan)
    return select_testable(study.frame, [one for one in asked if {one.more, one.less} <= set(FACTORS)])


def describe_differences(study: AnalysedStudy, table: pd.DataFrame) -> str:
    """Say which differences have an interval on one side of 0, and whether the fit is to be believed."""
    clear = table[(table["points_low"] > 0) | (table["points_high"] < 0)]
    named = "; ".join(_describe_row(row) for row in clear.to_dict("records"))
    count = f"{len(clear)} of {len(table)}"
    said = f"Differences whose 95% interval excludes 0: {count}{f' ({named})' if named else ''}."
    return f"{said} {fit(study).diagnostics.describe()}"


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
    design = designs.build(study.frame, write_formula(study))
    drawn = sampler.sample_prior(design, choose_priors(study), PRIOR_DRAWS, study.seed)
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
    made = fit(study)
    drawn = predictive.draw_responses(made.design, made.draws, residuals.DRAWS, study.rng, study.progress)
    return residuals.compare(study, drawn)


def estimate_seconds(study: AnalysedStudy) -> float:
    """Estimate the processor time of a fit, s."""
    return COMPILE_S + ROW_S * len(study.frame)


def _explain(study: AnalysedStudy, head: str) -> str:
    """Say what the numbers of a fit are, with model, priors and sampler."""
    return f"{_explain_model(study, head)} {fit(study).settings.describe()}"


def _explain_model(study: AnalysedStudy, head: str) -> str:
    """Say what numbers are, with model and priors."""
    text, priors = write_formula(study), choose_priors(study)
    described = priors.describe(
        correlated=any(term.correlated and term.columns != "1" for term in formulas.terms(text))
    )
    return f"{head} Model: {text}. {described}"


def _explain_prior(study: AnalysedStudy) -> str:
    return f"{_explain_model(study, _PRIOR)} {PRIOR_DRAWS:,} draws from the priors, random seed {study.seed}."


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
    partial(_explain, head=_DIFFERENCES),
    lambda study: (table := compute_differences(study), draw_differences(table)),
    has_models,
    describe_differences,
    estimate_seconds,
    BAYES,
)
PARAMETERS = ExploratoryAnalysis(
    "Bayesian fit: parameters",
    partial(
        _explain,
        head=f"{EXPLANATION} R-hat near 1: the chains agree. Effective draws: in "
        "bulk, and at the limits of the interval.",
    ),
    lambda study: (fit(study).table, None),
    has_models,
    lambda study, _: fit(study).diagnostics.describe(),
    estimate_seconds,
    BAYES,
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
    lambda study, table: f"{residuals.describe(table, study.level)} {fit(study).diagnostics.describe()}",
    estimate_seconds,
    BAYES,
)
