"""Random terms that glmm does not know, held against glmmTMB and a slow likelihood written from the definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from core.errors import ForetellError
from study.analysis.models import mixed
from tests.study.analysis import glmmtmb, lme4, rscript
from tests.study.analysis.simulated import laplace, slopes


def by_factor(seed: int) -> pd.DataFrame:
    """Answers of 30 people who differ in each level of a factor."""
    frame, rng = slopes(seed), np.random.default_rng(1000 + seed)
    frame["f"] = rng.choice(["a", "b", "c"], len(frame))
    own = {(name, level): rng.normal(0, 1) for name in sorted(set(frame["id"])) for level in "abc"}
    eta = 0.3 + 0.5 * frame["x"] + np.array([own[key] for key in zip(frame["id"], frame["f"], strict=True)])
    frame["z"] = rng.integers(2, size=len(frame))
    eta = eta + np.array([own[name, "a"] for name in frame["id"]]) * frame["z"] * frame["x"]
    return frame.assign(y=(rng.random(len(frame)) < expit(eta)).astype(int))


@glmmtmb.needed
@pytest.mark.parametrize("formula", ["y ~ x + (x||id)", "y ~ x + (0 + x|id)", "y ~ 1 + (x|id)"])
def test_slopes_of_numbers(tmp_path: Path, formula: str) -> None:
    """Catches a correlation where none was asked for, an intercept too many, and a slope that needs a fixed effect."""
    frame = slopes(11)
    rscript.agrees(mixed.fit(frame, formula), glmmtmb.fit(frame, formula, tmp_path))


@lme4.needed
@pytest.mark.parametrize(
    "formula", ["y ~ x * f + (f|id)", "y ~ x + (f|id)", "y ~ x + (0 + f|id)", "y ~ x + (x * z|id)"]
)
def test_slopes_of_a_factor(tmp_path: Path, formula: str) -> None:
    """Catches a factor's columns in another coding than R's."""
    frame = by_factor(11)
    rscript.agrees(mixed.fit(frame, formula), lme4.fit(frame, formula, tmp_path), 1e-4, lme4.SE_RTOL)


def test_a_slope_without_correlation_is_the_definition_s() -> None:
    # Oracle: tests.study.analysis.simulated.laplace, of which a slope is a group whose loading is multiplied by x.
    frame = slopes(3).iloc[:240]
    model = mixed.fit(frame, "y ~ x + (0 + x|id)")
    design = np.column_stack([np.ones(len(frame)), frame["x"]])
    groups, y, x = pd.factorize(frame["id"])[0], frame["y"].to_numpy(float), frame["x"].to_numpy()

    def loss(theta: np.ndarray) -> float:
        return -slope_laplace(theta[:2], float(np.exp(theta[2])), design, groups, x, y)

    found = minimize(loss, [0.0, 0.5, -0.7], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10})
    assert model.loglik == pytest.approx(-found.fun, abs=1e-6)
    np.testing.assert_allclose([c.estimate for c in model.coefficients], found.x[:2], atol=1e-4)
    assert model.random[0].sd == pytest.approx(float(np.exp(found.x[2])), abs=1e-4)
    assert laplace(found.x[:2], np.zeros(1), design, [groups], y) < -found.fun  # the slope is needed


def slope_laplace(beta, sd, design, groups, x, y) -> float:
    """The Laplace likelihood with one slope for each group: the integral of each group by itself."""
    total = 0.0
    for g in range(groups.max() + 1):
        at = groups == g
        u = 0.0
        for _ in range(60):
            p = expit(design[at] @ beta + sd * x[at] * u)
            step = (sd * x[at] @ (y[at] - p) - u) / ((sd * x[at]) ** 2 @ (p * (1 - p)) + 1)
            u += step
        eta = design[at] @ beta + sd * x[at] * u
        p = expit(eta)
        curvature = (sd * x[at]) ** 2 @ (p * (1 - p)) + 1
        total += float(np.sum(y[at] * eta - np.logaddexp(0, eta))) - u * u / 2 - np.log(curvature) / 2
    return total


def test_what_has_no_likelihood_here_refuses_uncorrelated_slopes() -> None:
    frame = slopes(3).assign(count=1)
    with pytest.raises(ForetellError, match="are known of gaussian models, and of binomial"):
        mixed.fit(frame, "count ~ x + (x||id)", family="poisson", agq=5)
