"""The Bayesian fit of a study: what a report and the page Results have of it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.bayes import design, posterior, predictive, sampler
from study.analysis.bayes.diagnostics import Diagnostics
from study.analysis.bayes.priors import Priors
from study.analysis.exploratory import analysis, bayes, posteriors
from study.analysis.exploratory.analysis import AnalysedStudy
from study.analysis.planned import analysis as planned
from study.analysis.report import headline
from study.analysis.responses.reading import prepare
from study.plan.preregistration import AnalysisPlan, PlannedPriors
from tests.study.analysis.simulated import study

PLAN = AnalysisPlan(
    models={"null": "trial_type", "interaction": "trial_type * saliency * examples"},
    tests="chi_square",
    equivalence=10,
    prior_sd=2.0,
    priors=PlannedPriors(random_sd=0.8),
)


@pytest.fixture(scope="module")
def one() -> AnalysedStudy:
    """A planned study in which all responses with saliency maps are correct where the AI is right."""
    frame = study(32, 8, 6, seed=11)
    certain = (frame["trial_type"] == "std_correct") & (frame["saliency"] == 1) & (frame["examples"] == 0)
    done = planned.execute(prepare(frame.assign(correct=frame["correct"].where(~certain, 1))), PLAN)
    return AnalysedStudy(done.data, seed=1, models=done.analysis, plan=done)


def test_a_report_has_intervals_where_contrasts_are_blank(one: AnalysedStudy) -> None:
    """Catches other contrasts than the planned ones, priors that are not the plan's, and a fit for each analysis."""
    assert one.plan is not None
    said = headline.sentences(one.plan.contrasts)
    assert sum("a Bayesian fit has one" in line for line in said) == 1
    made = analysis.compute("bayes_differences", one)
    assert list(made.table["contrast"]) == list(one.plan.contrasts["contrast"])
    blank = one.plan.contrasts["points_low"].isna()
    assert blank.sum() == 1
    assert made.table[["points", "points_low", "points_high", "p_above", "p_within"]].notna().all(axis=None)
    assert "normal (0, 2) for each effect, half-normal (0.8) for the standard deviations" in made.says
    assert "The fit can be believed" in made.conclusion
    assert made.figure is not None
    assert len(made.figure.data[0].x) == 9
    first = posteriors.fit(one)
    assert posteriors.fit(one) is first
    parameters = analysis.compute("bayes_parameters", one).table
    assert parameters["parameter"].iloc[-2:].tolist() == ["SD participant (Intercept)", "SD category (Intercept)"]
    assert posteriors.fit(one) is first


def test_responses_are_compared_with_draws_from_the_posterior(one: AnalysedStudy) -> None:
    """Catches draws of other rows, or from the prior, whose properties are those of no responses."""
    made = analysis.compute("bayes_checks", one)
    spread = made.table.set_index("property").loc["Participants: spread"]
    assert spread["drawn_from"] < spread["observed"] < spread["drawn_to"]
    assert spread["drawn_to"] < 0.25
    assert "The fit can be believed" in made.conclusion


def test_the_prior_is_the_stated_one(one: AnalysedStudy) -> None:
    """Catches a prior of another scale, and one that the sentence does not say. Expected: moments in closed form."""
    built = design.build(one.frame, posteriors.write_formula(one))
    drawn = sampler.sample_prior(built, Priors(0.5, 1.2, 0.7), 4000)
    coefficients, covariances = drawn.flatten()
    centred = coefficients[:, 0] + coefficients @ built.centre
    assert centred.std() == pytest.approx(1.2, rel=0.06)
    assert coefficients[:, 1:].std(axis=0) == pytest.approx(np.full(11, 0.5), rel=0.06)
    sds = np.sqrt(covariances[0][:, 0, 0])
    assert sds.mean() == pytest.approx(0.7 * np.sqrt(2 / np.pi), rel=0.06)
    made = analysis.compute("bayes_prior", one)
    assert (made.table["drawn_from"] < made.table["observed"]).all()
    assert "All observed values are among them." in made.conclusion
    outside = bayes.describe_prior(made.table.assign(observed=2.0))
    assert "Outside are: Accuracy, AI wrong (adversarial) (200.0%)" in outside


def test_the_prior_of_correlations_does_not_depend_on_signs() -> None:
    """Catches a correlation that loses its sign with the standard deviations. LKJ (2) of two: variance 1 / 5."""
    frame = study(16, 4, 2, seed=1)
    drawn = sampler.sample_prior(design.build(frame, "correct ~ 1 + (saliency|category)"), Priors(), 4000)
    covariance = drawn.flatten()[1][0]
    correlation = covariance[:, 0, 1] / np.sqrt(covariance[:, 0, 0] * covariance[:, 1, 1])
    assert correlation.mean() == pytest.approx(0, abs=0.03)
    assert correlation.var() == pytest.approx(1 / 5, rel=0.08)


def test_drawn_responses_have_the_models_variation() -> None:
    """Catches random effects of the old levels, or none. Expected: the mean over a normal effect by quadrature."""
    frame = pd.DataFrame({"who": np.repeat(np.arange(50), 40).astype(str), "correct": np.tile([0, 1], 1000)})
    built = design.build(frame, "correct ~ 1 + (1|who)")
    draws = sampler.ParameterDraws(np.full((1, 1, 1), 1.0), [np.full((1, 1, 1, 1), 4.0)], np.zeros((1, 1)))
    made = predictive.draw_responses(built, draws, 200, np.random.default_rng(0))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    chance = 1 / (1 + np.exp(-(1 + 2 * nodes)))
    mean = chance @ weights / weights.sum()
    between = np.sqrt((chance - mean) ** 2 @ weights / weights.sum())
    assert made.mean() == pytest.approx(mean, abs=0.01)
    people = made.reshape(200, 50, 40).mean(axis=2)
    assert people.std() == pytest.approx(np.sqrt(between**2 + (mean - mean**2 - between**2) / 40), rel=0.03)


def test_a_fit_that_is_not_to_be_believed_is_in_no_sentence(
    one: AnalysedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches differences of chains that disagree."""
    monkeypatch.setitem(vars(posteriors.fit(one)), "diagnostics", Diagnostics(1.3, 30, 2, 4000))
    with pytest.raises(ForetellError, match="Do not believe this fit: the chains disagree"):
        analysis.compute("bayes_differences", one)
    assert "Do not believe" in analysis.compute("bayes_parameters", one).conclusion


def test_a_fit_can_be_stopped(one: AnalysedStudy) -> None:
    """Catches a fit that ends only by itself."""

    def stop(done: int, total: int, what: str) -> None:
        if done >= 2:
            raise KeyboardInterrupt(f"{done} of {total}")

    with pytest.raises(KeyboardInterrupt, match="2 of 120"):
        posterior.fit(one.frame, "correct ~ 1", progress=stop)


def test_priors_are_hashed_with_the_plan_where_they_are_set() -> None:
    """Catches older plans whose hash changes, and a prior that can be exchanged after the fact."""
    plain = AnalysisPlan()
    assert "priors" not in plain.model_dump(mode="json")
    assert AnalysisPlan(priors=PlannedPriors()).sha256 == plain.sha256
    assert AnalysisPlan(priors=PlannedPriors(random_sd=0.5)).sha256 != plain.sha256
    with pytest.raises(ValueError, match="greater than 0"):
        PlannedPriors(random_sd=0)
    assert Priors.of_plan(plain) == Priors()
    assert Priors.of_plan(PLAN) == Priors(2.0, 1.5, 0.8, 2.0)


def test_nothing_imports_jax_before_a_fit_is_asked_for() -> None:
    """Catches a start of the application or of `analyze` that waits for JAX."""
    code = (
        "import sys, dashboard.cli.main, dashboard.cli.glmm, dashboard.cli.analysis, study.analysis.report.results\n"
        "from study.analysis.exploratory.analysis import EXPLORATORY\n"
        "dict(EXPLORATORY.items()); print({'jax', 'numpyro'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
