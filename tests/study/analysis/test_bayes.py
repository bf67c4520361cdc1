"""Bayesian fits against posteriors integrated on a grid, against maximum likelihood, and where cells are separated."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import norm

from core.errors import ForetellError
from study.analysis.bayes import contrasts, design, diagnostics, posterior
from study.analysis.bayes.diagnostics import Diagnostics
from study.analysis.bayes.means import estimate_means
from study.analysis.bayes.posterior import Posterior
from study.analysis.bayes.priors import Priors
from study.analysis.bayes.sampler import SamplerSettings
from study.analysis.models import mixed
from study.analysis.planned import contrasts as planned
from study.analysis.planned.contrasts import Contrast
from tests.study.analysis.simulated import study

TRIALS = 12


@pytest.fixture(scope="module")
def counts() -> pd.DataFrame:
    """Hits of ten participants, seven of whom had x = 1: the mean of x is not a half."""
    rng = np.random.default_rng(5)
    x = np.repeat([0, 1], [3, 7])
    hits = rng.binomial(TRIALS, expit(0.4 + 0.9 * x + rng.normal(0, 0.8, 10)))
    return pd.DataFrame({"who": [f"p{k}" for k in range(10)], "x": x, "hits": hits, "misses": TRIALS - hits})


def integrate(counts: pd.DataFrame, priors: Priors) -> pd.DataFrame:
    """Mean and quantiles of intercept (at the mean of x), effect and SD, by quadrature in all dimensions."""
    a, b, s = np.linspace(-2, 3, 41), np.linspace(-2.5, 4, 41), np.linspace(0.01, 3.5, 50)
    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    alpha, beta, sd = np.meshgrid(a, b, s, indexing="ij")
    log = norm.logpdf(alpha, 0, priors.intercept_sd) + norm.logpdf(beta, 0, priors.effect_sd)
    log = log + norm.logpdf(sd, 0, priors.random_sd)
    for (x, hits), size in counts.groupby(["x", "hits"]).size().items():
        eta = (alpha + beta * (x - counts["x"].mean()))[..., None] + sd[..., None] * nodes
        each = hits * eta - TRIALS * np.logaddexp(0, eta)
        log = log + size * logsumexp(each + np.log(weights), axis=-1)
    mass = np.exp(log - log.max())
    mass /= mass.sum()
    rows = []
    for axis, values in enumerate((a, b, s)):
        margin = mass.sum(axis=tuple({0, 1, 2} - {axis}))
        limits = np.interp([0.025, 0.975], np.cumsum(margin) - margin / 2, values)
        mean = margin @ values
        rows.append((mean, np.sqrt(margin @ (values - mean) ** 2), *limits))
    return pd.DataFrame(rows, columns=["mean", "sd", "low", "high"], index=["intercept", "x", "random"])


@pytest.fixture(scope="module")
def narrow(counts: pd.DataFrame) -> Posterior:
    return posterior.fit(counts, "cbind(hits, misses) ~ x + (1|who)", priors=Priors(0.5, 0.4, 0.7))


def test_the_posterior_is_that_of_quadrature(counts: pd.DataFrame, narrow: Posterior) -> None:
    """Catches a prior of another scale, predictors that are not centred, and a wrong likelihood: four Monte Carlo SEs.

    Priors are narrow, so that each of them moves the posterior by more than these.
    """
    exact = integrate(counts, narrow.priors)
    drawn = narrow.table.set_index("parameter").rename({"SD who (Intercept)": "random"})
    centred = narrow.draws.coefficients @ np.array([1.0, counts["x"].mean()])
    low, high = np.quantile(centred, (0.025, 0.975))
    drawn.loc["intercept", ["mean", "low", "high", "ess_bulk"]] = centred.mean(), low, high, 1_000
    for name, true in exact.iterrows():
        error = true["sd"] / np.sqrt(drawn.loc[name, "ess_bulk"])
        assert drawn.loc[name, "mean"] == pytest.approx(true["mean"], abs=4 * error), name
        for limit in ("low", "high"):  # a quantile's error is about 2.7 times a mean's at these shares
            assert drawn.loc[name, limit] == pytest.approx(true[limit], abs=4 * 2.7 * error), (name, limit)


def test_a_fit_that_went_well_says_so(narrow: Posterior) -> None:
    """Catches a diagnosis that is always bad, or whose numbers are not the table's worst."""
    made = narrow.diagnostics
    assert made.is_reliable
    assert made.rhat >= narrow.table["rhat"].max()
    assert made.effective <= narrow.table[["ess_bulk", "ess_tail"]].to_numpy().min()
    assert made.describe().startswith("The fit can be believed: R-hat at most 1.0")
    assert made.describe().endswith("effective draws of 4,000, no divergences.")


@pytest.fixture(scope="module")
def certain() -> pd.DataFrame:
    """Two groups, one of which has correct responses only."""
    return pd.DataFrame({"x": [0, 1], "hits": [12, 20], "misses": [8, 0]})


def fit_certain(frame: pd.DataFrame, seed: int) -> Posterior:
    settings = SamplerSettings(draws=1000, warmup=200, seed=seed)
    return posterior.fit(frame, "cbind(hits, misses) ~ x", settings=settings, link="probit")


def test_the_same_seed_gives_the_same_draws_and_those_of_quadrature(certain: pd.DataFrame) -> None:
    """Catches a start that depends on the time, a seed that is not passed on, and a wrong interval where all is right.

    The difference in percentage points, by quadrature over intercept and effect of the probit model, to 4 Monte Carlo
    SEs of 1,500 effective draws.
    """
    first, again, other = (fit_certain(certain, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.draws.coefficients, again.draws.coefficients)
    assert not np.array_equal(first.draws.coefficients, other.draws.coefficients)
    assert not np.array_equal(first.draws.coefficients[0], first.draws.coefficients[1])
    alpha, beta = np.meshgrid(np.linspace(-4, 5, 400), np.linspace(-4, 6, 400), indexing="ij")
    p = norm.cdf(alpha - beta / 2), norm.cdf(alpha + beta / 2)
    with np.errstate(divide="ignore"):
        log = norm.logpdf(alpha, 0, 1.5) + norm.logpdf(beta) + 12 * np.log(p[0]) + 8 * np.log(1 - p[0])
        log = log + 20 * np.log(p[1])
    mass = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
    points = 100 * (p[1] - p[0])
    mean = float(np.sum(mass * points))
    sd = np.sqrt(np.sum(mass * (points - mean) ** 2))
    order = np.argsort(points, axis=None)
    exact = np.interp([0.025, 0.975], np.cumsum(mass.ravel()[order]), points.ravel()[order])
    row = estimate_means(certain, first, "x", contrasts=["reference"], bounds=(-10, 40)).contrasts.iloc[0]
    assert row["p_within"] == pytest.approx(np.sum(mass * (points > -10) * (points < 40)), abs=2 / np.sqrt(1500))
    assert row["points"] == pytest.approx(mean, abs=4 * sd / np.sqrt(1500))
    assert row[["points_low", "points_high"]].to_numpy() == pytest.approx(exact, abs=4 * 2.7 * sd / np.sqrt(1500))


@pytest.fixture(scope="module")
def many() -> pd.DataFrame:
    """Responses of 60 participants who differ in the effect of a time in milliseconds."""
    rng = np.random.default_rng(8)
    people, each = 60, 30
    who, time = np.repeat(np.arange(people), each), rng.uniform(300, 900, people * each)
    own = rng.multivariate_normal([0, 0], [[0.64, 0.2], [0.2, 0.25]], people)[who]
    eta = 0.3 + own[:, 0] + (0.8 + own[:, 1]) * (time - 600) / 170
    return pd.DataFrame(
        {"who": who.astype(str), "time": time, "correct": (rng.random(len(who)) < expit(eta)).astype(int)}
    )


def test_flat_priors_and_many_responses_agree_with_maximum_likelihood(many: pd.DataFrame) -> None:
    """Catches columns in other units, a covariance whose terms changed places, and a term that means another thing.

    Within a fifth of a standard error, and posterior standard deviations within 15% of standard errors.
    """
    formula = "correct ~ time + (time|who)"
    flat = Priors(100.0, 100.0, 100.0, 1.0)
    made = posterior.fit(many, formula, priors=flat, settings=SamplerSettings(draws=300, warmup=300))
    assert made.design.scale[1] == pytest.approx(many["time"].std(ddof=0))
    scaled = many.assign(time=(many["time"] - many["time"].mean()) / many["time"].std(ddof=0))
    likely = mixed.fit(scaled, formula)
    sd, middle = many["time"].std(ddof=0), many["time"].mean()
    turn = np.array([[1.0, middle], [0.0, sd]])
    coefficients = made.draws.flatten()[0] @ turn.T
    for k, one in enumerate(likely.coefficients):
        assert coefficients[:, k].mean() == pytest.approx(one.estimate, abs=one.se / 5)
        assert coefficients[:, k].std() == pytest.approx(one.se, rel=0.15)
    covariance = np.median(turn @ made.draws.flatten()[1][0] @ turn.T, axis=0)
    assert np.sqrt(np.diag(covariance)) == pytest.approx(np.sqrt(np.diag(likely.blocks[0].covariance)), rel=0.15)
    assert covariance[0, 1] == pytest.approx(likely.blocks[0].covariance[0, 1], abs=0.08)


@pytest.fixture(scope="module")
def separated() -> pd.DataFrame:
    """A study in which all responses with saliency maps are correct where the AI is right."""
    frame = study(32, 12, 6, seed=11)
    certain = (frame["trial_type"] == "std_correct") & (frame["saliency"] == 1) & (frame["examples"] == 0)
    return frame.assign(correct=frame["correct"].where(~certain, 1))


@pytest.fixture(scope="module")
def fitted(separated: pd.DataFrame) -> Posterior:
    formula = "correct ~ trial_type * saliency * examples + (1|participant) + (1|category)"
    return posterior.fit(separated, formula, priors=Priors(effect_sd=3.0), settings=SamplerSettings(draws=300))


def test_a_separated_cell_has_an_interval(separated: pd.DataFrame, fitted: Posterior) -> None:
    """Catches a contrast that is blank, as by maximum likelihood, and others that a vague prior moved by much."""
    asked = [Contrast("saliency", "none", (kind,)) for kind in ("adv_incorrect", "std_incorrect", "std_correct")]
    likely = planned.table(mixed.fit(separated, fitted.design.model.formula), asked).set_index("contrast")
    made = contrasts.tabulate(fitted, asked, (-10.0, 10.0)).set_index("contrast")
    name = "saliency - none, std_correct"
    assert likely.loc[name, ["points_low", "points_high", "p"]].isna().all()
    row = made.loc[name]
    assert -5 < row["points_low"] < row["points"] < row["points_high"] < 100
    assert row["p_above"] > 0.9
    assert row["accuracy_more"] < 1
    others = made.drop(name), likely.drop(name)
    assert others[0]["points"].to_numpy() == pytest.approx(others[1]["points"].to_numpy(), abs=4)
    widths = [table["points_high"] - table["points_low"] for table in others]
    assert widths[0].to_numpy() == pytest.approx(widths[1].to_numpy(), rel=0.25)


def test_means_of_any_factor_are_those_of_the_contrasts(separated: pd.DataFrame, fitted: Posterior) -> None:
    """Catches a mean over other cells, and a probability on the wrong side of 0."""
    made = estimate_means(separated, fitted, "saliency | trial_type", contrasts=["reference"], bounds=(-10, 10))
    both = [Contrast("both", "examples", ("std_correct",)), Contrast("saliency", "none", ("std_correct",))]
    parts = contrasts.tabulate(fitted, both)
    row = made.contrasts.set_index("trial_type").loc["std_correct"]
    assert row["points"] == pytest.approx(parts["points"].mean())
    cells = made.means.set_index(["saliency", "trial_type"])["accuracy"]
    assert 100 * (cells[1, "std_correct"] - cells[0, "std_correct"]) == pytest.approx(row["points"])
    again = estimate_means(separated, fitted, "saliency | trial_type")
    assert again.contrasts["p_above"].to_numpy() == pytest.approx(1 - made.contrasts["p_above"].to_numpy())


def test_rows_that_no_response_decides_stay_blank(separated: pd.DataFrame) -> None:
    """Catches a number for an empty cell, which would be the prior's alone."""
    absent = separated[~((separated["saliency"] == 1) & (separated["examples"] == 1))]
    made = design.build(absent, "correct ~ trial_type * saliency * examples + (1|participant)")
    dropped = (
        "saliency:examples",
        "trial_typestd_correct:saliency:examples",
        "trial_typestd_incorrect:saliency:examples",
    )
    assert made.model.dropped == mixed.fit(absent, made.model.formula).dropped == tuple(sorted(dropped, key=len))
    assert "cannot be estimated" in made.messages[0]
    blank = contrasts.summarise(np.full((9, 1), np.nan), (-1, 1))
    assert blank.isna().all(axis=None)


def test_rhat_is_that_of_the_definition_and_sees_what_is_wrong() -> None:
    """Catches R-hat of one chain, without halves, or without the folded ranks."""
    rng = np.random.default_rng(2)
    good = rng.standard_normal((4, 500))
    assert diagnostics.compute_rhat(good) < 1.005
    assert diagnostics.compute_effective(good)[0] == pytest.approx(2000, rel=0.1)
    shifted = good + np.array([0, 0, 0, 1.0])[:, None]
    assert diagnostics.compute_rhat(shifted) > 1.1
    wider = good * np.array([1, 1, 1, 3.0])[:, None]
    assert diagnostics.compute_rhat(wider) > 1.05
    drifting = good + np.linspace(0, 2, 500)
    assert diagnostics.compute_rhat(drifting) > 1.1
    slow = np.zeros((4, 4000))
    for k in range(1, 4000):
        slow[:, k] = 0.8 * slow[:, k - 1] + rng.standard_normal(4)
    assert diagnostics.compute_effective(slow)[0] == pytest.approx(16_000 / 9, rel=0.2)  # (1 - r) / (1 + r) of all


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (Diagnostics(1.2, 900, 0, 4000), "the chains disagree"),
        (Diagnostics(1.0, 90, 0, 4000), r"too few effective draws \(90, .* Remedy: take more draws\."),
        (Diagnostics(1.0, 900, 1, 4000), r"1 divergence of 4,000 draws. Remedy: state stronger priors"),
        (Diagnostics(np.nan, 900, 0, 4000), "the chains disagree"),
    ],
)
def test_a_fit_that_went_badly_says_why_and_what_to_do(made: Diagnostics, said: str) -> None:
    """Catches a fault that is believed."""
    assert not made.is_reliable
    with pytest.raises(ForetellError, match=f"Do not believe this fit: {said}"):
        raise ForetellError(made.describe())


def test_what_cannot_be_fitted_is_refused(counts: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a sentence without the remedy, and a number where the prior is none."""
    with pytest.raises(
        ForetellError, match=r"prior SD of effects is -1, which is no proper prior: give a number above"
    ):
        Priors(effect_sd=-1)
    with pytest.raises(ForetellError, match="LKJ parameter of correlations is inf"):
        Priors(correlation=np.inf)
    with pytest.raises(ForetellError, match=r"20 draws of each chain are too few .* at least 100"):
        SamplerSettings(draws=20)
    with pytest.raises(ForetellError, match=r"Column 'who' has one level only, 'p1'.*: leave the random term"):
        posterior.fit(counts[counts["who"] == "p1"], "cbind(hits, misses) ~ 1 + (1|who)")
    with pytest.raises(ForetellError, match="link logit or probit, not 'log'"):
        posterior.fit(counts, "cbind(hits, misses) ~ 1 + (1|who)", link="log")
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(ForetellError, match=r"needs NumPyro and JAX\. Run: .* -r requirements-bayes\.txt"):
        posterior.fit(counts, "cbind(hits, misses) ~ 1 + (1|who)")
