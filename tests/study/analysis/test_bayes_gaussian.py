"""Bayesian fits of Gaussian mixed models, against quadrature over closed forms and against maximum likelihood."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import halfnorm, multivariate_normal

from core.errors import ForetellError
from study.analysis.bayes import design, posterior, printing
from study.analysis.bayes.means import estimate_means
from study.analysis.bayes.posterior import Posterior
from study.analysis.bayes.priors import Priors
from study.analysis.models import mixed

NARROW = Priors(effect_sd=0.4, intercept_sd=0.3, random_sd=0.5, residual_sd=0.6)
"""Each of them moves the posterior by more than the Monte Carlo error."""
FORMULA = "ms ~ x + (1|who)"


@pytest.fixture(scope="module")
def times() -> pd.DataFrame:
    """Response times of 5 participants, 6 each, in a unit far from that of the priors."""
    rng = np.random.default_rng(4)
    who, x = np.repeat(np.arange(5), 6), np.tile([0, 1, 1], 10)
    ms = 800 + 120 * x + rng.normal(0, 60, 5)[who] + rng.normal(0, 110, 30)
    return pd.DataFrame({"ms": ms, "x": x, "who": who.astype(str)})


def integrate(frame: pd.DataFrame, priors: Priors) -> pd.DataFrame:
    """Integrate over both standard deviations on a grid; given them, the coefficients are normal in closed form."""
    unit, centre = frame["ms"].std(ddof=0), frame["ms"].mean()
    y, x = (frame["ms"].to_numpy() - centre) / unit, frame["x"].to_numpy(float)
    columns = np.column_stack([np.ones(len(x)), x - x.mean()])
    groups = pd.get_dummies(frame["who"]).to_numpy(float)
    before = np.diag([priors.intercept_sd**2, priors.effect_sd**2])
    rows = []
    for sd in np.linspace(0.002, 1.6, 90):
        for residual in np.linspace(0.4, 1.6, 80):
            noise = residual**2 * np.eye(len(y)) + sd**2 * groups @ groups.T
            log = multivariate_normal.logpdf(y, cov=noise + columns @ before @ columns.T)
            log += halfnorm.logpdf(sd, scale=priors.random_sd) + halfnorm.logpdf(residual, scale=priors.residual_sd)
            after = np.linalg.inv(columns.T @ np.linalg.solve(noise, columns) + np.linalg.inv(before))
            mean = after @ columns.T @ np.linalg.solve(noise, y)
            rows.append((log, sd, residual, *mean, *np.diag(after)))
    log, sds, residual, intercept, effect, var_intercept, var_effect = np.array(rows).T
    mass = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
    none = np.zeros_like(mass)
    parts = {"SD who (Intercept)": (sds, none), "SD residual": (residual, none), "x": (effect, var_effect)}
    parts["centred"] = (intercept, var_intercept)
    made = {}
    for name, (values, variances) in parts.items():
        mean = mass @ values
        sd = np.sqrt(mass @ (values**2 + variances) - mean**2)
        made[name] = (unit * mean + centre * (name == "centred"), unit * sd)
    return pd.DataFrame(made, index=["mean", "sd"]).T


@pytest.fixture(scope="module")
def narrow(times: pd.DataFrame) -> Posterior:
    return posterior.fit(times, FORMULA, family="gaussian", priors=NARROW)


def test_the_posterior_is_that_of_quadrature(times: pd.DataFrame, narrow: Posterior) -> None:
    """Catches a prior of another scale or unit, and a wrong likelihood: four Monte Carlo SEs of mean and SD."""
    exact = integrate(times, NARROW)
    drawn = dict(narrow.list_parameters())
    drawn["centred"] = narrow.draws.coefficients @ np.array([1.0, times["x"].mean()])
    few = narrow.table.set_index("parameter")["ess_bulk"].min()
    assert narrow.diagnostics.is_reliable
    for name, true in exact.iterrows():
        error = true["sd"] / np.sqrt(few)
        assert drawn[str(name)].mean() == pytest.approx(true["mean"], abs=4 * error), name
        assert drawn[str(name)].std() == pytest.approx(true["sd"], abs=4 * error), name
    assert "half-normal (0.6) for the residual standard deviation" in narrow.describe_priors
    assert "Priors (SDs of the response): normal (0, 0.3) for the intercept" in narrow.describe_priors


def test_differences_are_in_the_responses_unit(times: pd.DataFrame) -> None:
    """Catches differences times 100, of probabilities, or averaged over a link. Expected: the effect of x itself."""
    coded = times.assign(x=times["x"].astype(str))
    fit = posterior.fit(coded, FORMULA, family="gaussian")
    made = estimate_means(coded, fit, "x", contrasts=["reference"], bounds=(0, 100))
    row, effect = made.contrasts.iloc[0], dict(fit.list_parameters())["x1"]
    assert row["estimate"] == pytest.approx(effect.mean())
    assert [row["low"], row["high"]] == pytest.approx(np.quantile(effect, [0.025, 0.975]))
    assert row["p_above"] == pytest.approx((effect > 0).mean())
    assert row["p_within"] == pytest.approx(((effect > 0) & (effect < 100)).mean())
    assert made.means["mean"].between(700, 1000).all()
    assert "percentage points" not in " ".join(printing.write_means(made, (0, 100)))


def test_with_wide_priors_it_is_maximum_likelihood() -> None:
    """Catches random slopes in the wrong unit, and an offset that is lost: a fifth of a standard error."""
    rng = np.random.default_rng(0)
    who, x = np.repeat(np.arange(40), 15), rng.normal(10, 3, 600)
    own = rng.normal(0, (30, 8), (40, 2))
    known = rng.normal(0, 50, 600)
    ms = 500 + own[who, 0] + (12 + own[who, 1]) * (x - 10) + known + rng.normal(0, 40, 600)
    frame = pd.DataFrame({"ms": ms, "x": x - 10, "who": who.astype(str), "known": known})
    formula = "ms ~ x + offset(known) + (x || who)"
    fit = posterior.fit(frame, formula, family="gaussian", priors=Priors(50, 50, 50, residual_sd=50))
    likely = mixed.fit(frame, formula, family="gaussian")
    table = fit.table.set_index("parameter")
    for one in likely.coefficients:
        assert one.se is not None
        assert table.loc[one.term, "mean"] == pytest.approx(one.estimate, abs=0.2 * one.se)
    for effect in likely.random:
        assert table.loc[f"SD {effect.group} {effect.term}", "median"] == pytest.approx(effect.sd, rel=0.1)
    assert table.loc["SD residual", "mean"] == pytest.approx(np.sqrt(likely.dispersion), rel=0.02)
    assert np.sqrt(fit.model.dispersion) == pytest.approx(np.sqrt(likely.dispersion), rel=0.02)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"family": "poisson"}, "Bayesian fits are of binomial or gaussian models"),
        ({"family": "gaussian", "weights": "x"}, "no other link and no weights"),
        ({"family": "gaussian", "link": "log"}, "no other link and no weights"),
    ],
)
def test_what_the_sampler_does_not_know_is_refused(times: pd.DataFrame, options: dict[str, str], said: str) -> None:
    """Catches an option that is ignored, or a family that is fitted as another."""
    with pytest.raises(ForetellError, match=said):
        design.build(times, FORMULA, **options)  # type: ignore[arg-type]


def test_a_constant_response_is_refused(times: pd.DataFrame) -> None:
    """Catches a division by a standard deviation of 0."""
    with pytest.raises(ForetellError, match="never varies"):
        design.build(times.assign(ms=500.0), FORMULA, family="gaussian")
