"""The likelihood away from its maximum."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.models import laplace, mixed
from tests.study.analysis import simulated
from tests.study.analysis.simulated import study

FORMULA = "correct ~ saliency + (1|participant) + (1|category)"


@pytest.mark.parametrize("at", [0.0, 0.3])
def test_against_the_slow_one(at: float) -> None:
    # Oracle: tests.study.analysis.simulated.laplace, dense and from the definition. Catches a wrong mode or log det.
    frame = study(12, 8, 8, seed=3, sd=0.8)
    likelihood, parameters = laplace.of(frame, mixed.fit(frame, FORMULA))
    parameters = parameters + at
    design = np.column_stack([np.ones(len(frame)), frame["saliency"]])
    groups = [pd.factorize(frame[name])[0] for name in ("participant", "category")]
    slow = simulated.laplace(parameters[:2], parameters[2:], design, groups, frame["correct"].to_numpy(float))
    assert likelihood.at(parameters).loglik == pytest.approx(slow, abs=1e-9)


@pytest.mark.parametrize("formula", [FORMULA, "correct ~ trial + (trial|participant) + (1|category)"])
def test_gradient_is_that_of_the_likelihood(formula: str) -> None:
    # Oracle: central differences, also where a variance is 0. Catches a missing term of the derivative of log det(H).
    frame = study(12, 8, 8, seed=3, sd=0.8).assign(trial=lambda f: (f["trial"] - 12) / 7)
    likelihood, parameters = laplace.of(frame, mixed.fit(frame, formula))
    for at in (parameters + 0.2, np.where(np.arange(len(parameters)) == len(parameters) - 1, 0.0, parameters)):
        steps = 1e-5 * np.eye(len(at))
        slope = [(likelihood.at(at + d).loglik - likelihood.at(at - d).loglik) / 2e-5 for d in steps]
        np.testing.assert_allclose(likelihood.at(at).gradient, slope, atol=1e-4)


def test_agrees_with_the_fit_and_is_flat_there() -> None:
    frame = study(24, 8, 8, seed=5)
    grouped = frame.groupby(["participant", "category", "saliency"])["correct"].agg(["sum", "count"]).reset_index()
    for data, formula in (
        (frame, FORMULA),
        (grouped, "cbind(sum, count - sum) ~ saliency + (1|participant) + (1|category)"),
    ):
        model = mixed.fit(data, formula)
        likelihood, parameters = laplace.of(data, model)
        point = likelihood.at(parameters)
        assert point.loglik == pytest.approx(model.loglik, abs=1e-6)
        assert np.abs(point.gradient).max() < 1e-2


def test_the_order_of_a_blocks_terms_does_not_matter() -> None:
    frame = study(12, 8, 8, seed=3, sd=0.8).assign(trial=lambda f: (f["trial"] - 12) / 7)
    model = mixed.fit(frame, "correct ~ trial + (trial|participant)")
    values = []
    for first in (None, "trial"):
        likelihood, parameters = laplace.of(frame, model, [first])
        values.append(likelihood.at(parameters).loglik)
    assert values[0] == pytest.approx(values[1], abs=1e-9)
    assert parameters[2] == pytest.approx(model.random[1].sd, abs=1e-12)  # the slope's own


def test_other_models_are_refused() -> None:
    frame = study(12, 8, 8, seed=3).assign(time=lambda f: f["trial"] + f["correct"] / 3)
    with pytest.raises(ForetellError, match="take Wald intervals"):
        laplace.of(frame, mixed.fit(frame, "time ~ saliency + (1|participant)", family="gaussian"))
    with pytest.raises(ForetellError, match="take Wald intervals"):
        laplace.of(frame, mixed.fit(frame, "correct ~ saliency + (1|participant)", agq=5))


def test_roots_of_singular_covariances() -> None:
    for covariance in (np.zeros((2, 2)), np.array([[4.0, 2.0], [2.0, 1.0]]), np.array([[2.0, 0.5], [0.5, 1.0]])):
        root = laplace.root(covariance)
        np.testing.assert_allclose(root @ root.T, covariance, atol=1e-12)
        assert root[0, 1] == 0
