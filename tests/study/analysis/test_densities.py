"""Probit and Poisson models with uncorrelated slopes, held against glmmTMB and against what their definition says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from study.analysis.models import mixed
from study.analysis.models.densities import Density, Log, Logit, Probit
from tests.study.analysis import glmmtmb, rscript

PROBIT = {"link": "probit"}
POISSON = {"family": "poisson"}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Choices and counts of 24 people, each with an effect of x of their own, about 10 items."""
    rng, n, people = np.random.default_rng(4), 480, 24
    who, what, x = rng.integers(people, size=n), rng.integers(10, size=n), rng.normal(size=n)
    eta = 0.2 + 0.5 * x + rng.normal(0, 0.7, people)[who] + rng.normal(0, 0.5, people)[who] * x
    eta = eta + rng.normal(0, 0.4, 10)[what]
    exposure = rng.uniform(0.5, 3, n)
    return pd.DataFrame(
        {
            "id": [f"p{k}" for k in who],
            "item": [f"i{k}" for k in what],
            "x": x,
            "y": (rng.random(n) < norm.cdf(eta)).astype(int),
            "exposure": exposure,
            "count": rng.poisson(exposure * np.exp(0.7 * eta)),
            "weight": rng.integers(1, 4, n),
        }
    )


@glmmtmb.needed
@pytest.mark.parametrize(
    ("formula", "settings", "family"),
    [
        ("y ~ x + (x||id) + (1|item)", PROBIT, 'binomial(link = "probit")'),
        ("count ~ x + offset(log(exposure)) + (x||id)", POISSON, "poisson"),
        ("count ~ 1 + (0 + x|id)", POISSON, "poisson"),
    ],
)
def test_the_fit_is_that_of_glmmtmb(
    frame: pd.DataFrame, tmp_path: Path, formula: str, settings: dict[str, str], family: str
) -> None:
    """Catches expected weights in place of the observed ones (of a probit they differ), and a forgotten log(y!)."""
    rscript.agrees(mixed.fit(frame, formula, **settings), glmmtmb.fit(frame, formula, tmp_path, family=family))  # type: ignore[arg-type]


def test_a_prior_weight_is_a_row_repeated(frame: pd.DataFrame) -> None:
    """Catches a weight that multiplies the count but not the rate, or not the constant; by its definition."""
    formula = "count ~ x + (x||id)"
    weighted = mixed.fit(frame, formula, weights="weight", **POISSON)
    repeated = mixed.fit(frame.loc[frame.index.repeat(frame["weight"])], formula, **POISSON)
    assert weighted.loglik == pytest.approx(repeated.loglik, abs=1e-6)
    for one, other in zip(weighted.coefficients, repeated.coefficients, strict=True):
        assert (one.estimate, one.se) == pytest.approx((other.estimate, other.se), abs=1e-4)


@pytest.mark.parametrize("density", [Logit(), Probit(), Log()], ids=lambda density: type(density).__name__)
def test_derivatives_are_those_of_the_density(density: Density) -> None:
    """Catches a sign, also far out, where Phi is 0 to machine precision; by central differences."""
    eta, step = np.array([-8.0, -1.3, 0.2, 0.9, 4.0]), 1e-4
    y, m = np.array([1.0, 0.0, 2.0, 1.0, 3.0]), np.array([1.0, 1.0, 5.0, 2.0, 4.0])
    first, second, third = density.differentiate(eta, y, m)
    up, down = density.differentiate(eta + step, y, m), density.differentiate(eta - step, y, m)
    slope = (density.log(eta + step, y, m) - density.log(eta - step, y, m)) / (2 * step)
    np.testing.assert_allclose(first, slope, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second, (down[0] - up[0]) / (2 * step), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(third, (up[1] - down[1]) / (2 * step), rtol=1e-5, atol=1e-6)
