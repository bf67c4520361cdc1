"""The parametric bootstrap of a likelihood-ratio test."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis import formula, mixed, ratiotest
from study.workspace import parallel
from tests.study.analysis.simulated import study

SMALL, LARGE = "correct ~ 1 + (1|participant)", "correct ~ saliency + (1|participant)"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return study(24, 6, 4, seed=3, sd=0.8)


def test_agrees_with_chi_square_where_that_holds(frame: pd.DataFrame) -> None:
    # 24 people and one coefficient between them: the chi-square is near, the bootstrap's mean statistic near 1.
    small, large = mixed.fit(frame, SMALL), mixed.fit(frame, LARGE)
    found = ratiotest.bootstrap(frame, small, large, seed=1, resamples=120, workers=1)
    assert found.chisq == pytest.approx(2 * (large.loglik - small.loglik))
    assert found.failed == 0
    assert found.p == pytest.approx(found.p_chisq, abs=4 * found.p_error + 0.05)
    assert found.draws.mean() == pytest.approx(1.0, abs=0.6)
    again = ratiotest.bootstrap(frame, small, large, seed=1, resamples=5, workers=1)
    assert set(again.draws) <= set(found.draws)


def test_draws_have_the_models_variance(frame: pd.DataFrame) -> None:
    # Catches random effects drawn per row, or with the wrong spread: the variance of people's means.
    model = mixed.fit(frame, SMALL)
    rng = np.random.default_rng(4)
    people = [
        frame.assign(y=ratiotest.simulate_responses(frame, SMALL, model, rng)).groupby("participant")["y"].mean().var()
        for _ in range(200)
    ]
    observed = frame.groupby("participant")["correct"].mean().var()
    assert np.mean(people) == pytest.approx(observed, rel=0.25)


def test_other_processes_give_the_same(frame: pd.DataFrame) -> None:
    small, large = mixed.fit(frame, SMALL), mixed.fit(frame, LARGE)
    one = ratiotest.bootstrap(frame, small, large, seed=2, resamples=8, workers=1)
    two = ratiotest.bootstrap(frame, small, large, seed=2, resamples=8, workers=2)
    np.testing.assert_array_equal(one.draws, two.draws)


def test_can_be_stopped(frame: pd.DataFrame) -> None:
    def stop(done: int, total: int, what: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parallel.each(abs, list(range(100)), workers=1, progress=stop)


def test_refusals(frame: pd.DataFrame) -> None:
    small, large = mixed.fit(frame, SMALL), mixed.fit(frame.head(100), LARGE)
    with pytest.raises(ForetellError, match="same rows"):
        ratiotest.bootstrap(frame, small, large, seed=1)
    with pytest.raises(ForetellError, match="resamples is 0"):
        ratiotest.bootstrap(frame, small, mixed.fit(frame, LARGE), seed=1, resamples=0)


def test_formulas_are_read() -> None:
    assert formula.extract_fixed_effects("y ~ a*b + (1|g) + (x|h)") == "~ a*b"
    assert formula.extract_fixed_effects("y ~ (1|g)") == "~ 1"
    assert formula.random("y ~ a + (1|g) + (x|h)") == " + (1|g) + (x|h)"
