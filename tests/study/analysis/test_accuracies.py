"""Intervals of mean accuracy: closed forms, edges, and their coverage in studies of few participants."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import t
from statsmodels.stats.proportion import proportion_confint

from core.errors import ForetellError
from study.analysis.exploratory import projection
from study.analysis.responses import accuracies
from study.analysis.responses import reading as responses
from tests.study.analysis.simulated import study


def test_an_interval_is_wilsons_of_a_size_that_has_the_variance_of_participants() -> None:
    """Catches intervals of responses as if they were independent, and the normal's quantile for few participants."""
    right = np.array([30, 25, 12, 28, 21, 9.0])
    share, low, high = accuracies.compute_intervals(right[:, None], np.full((6, 1), 30.0), 0.95)
    # Closed form: of equal participants, the variance is that of the mean of their means; the rest is statsmodels'.
    means = right / 30
    size = means.mean() * (1 - means.mean()) / (means.var(ddof=1) / 6)
    alpha = 2 * (1 - _normal(t.ppf(0.975, 5)))
    expected = proportion_confint(means.mean() * size, size, alpha=alpha, method="wilson")
    assert share[0] == pytest.approx(means.mean())
    assert (low[0], high[0]) == pytest.approx(expected, abs=1e-9)
    assert size < 0.2 * 180


def _normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def test_participants_with_more_responses_weigh_more() -> None:
    """Catches a mean of participants' means; the variance of a ratio is that of the jackknife, to first order."""
    rng = np.random.default_rng(1)
    responses_of = rng.integers(10, 60, 80).astype(float)
    right = rng.binomial(responses_of.astype(int), expit(rng.normal(0.5, 0.8, 80))).astype(float)
    share, low, high = accuracies.compute_intervals(right[:, None], responses_of[:, None], 0.95)
    assert share[0] == pytest.approx(right.sum() / responses_of.sum())
    left_out = (right.sum() - right) / (responses_of.sum() - responses_of)
    jackknife = math.sqrt(79 / 80 * np.sum((left_out - left_out.mean()) ** 2))
    assert (high[0] - low[0]) / (2 * t.ppf(0.975, 79)) == pytest.approx(jackknife, rel=0.03)


def test_edges_have_a_width() -> None:
    """Catches an interval of 100% to 100% where every response is correct, and a made-up one of one participant."""
    right, given = (
        np.array([[5.0, 5, 2, 4], [5, 5, 2, 0], [5, 5, 2, 0]]),
        np.array([[5.0, 5, 4, 5], [5, 5, 4, 0], [5, 5, 4, 0]]),
    )
    right[:, 1] = 0
    share, low, high = accuracies.compute_intervals(right, given, 0.95)
    alpha = 2 * (1 - _normal(t.ppf(0.975, 2)))
    assert (low[0], high[0]) == pytest.approx(proportion_confint(3, 3, alpha=alpha, method="wilson"))
    assert (low[1], high[1]) == pytest.approx(proportion_confint(0, 3, alpha=alpha, method="wilson"))
    assert (low[2], high[2]) == pytest.approx(proportion_confint(6, 12, alpha=alpha, method="wilson"))
    assert share[3] == 0.8
    assert np.isnan([low[3], high[3]]).all()


@pytest.mark.parametrize("people", [5, 10, 20])
@pytest.mark.parametrize("log_odds", [-1.0, 2.0])
def test_intervals_cover_with_few_participants(people: int, log_odds: float) -> None:
    """Catches percentiles of resampled participants, which cover .80 with 5, .87 with 10 and .92 with 20."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    truth = expit(log_odds + 0.8 * nodes) @ weights / weights.sum()
    rng = np.random.default_rng(people)
    right = rng.binomial(16, expit(rng.normal(log_odds, 0.8, (people, 4000)))).astype(float)
    _, low, high = accuracies.compute_intervals(right, np.full_like(right, 16.0), 0.95)
    assert 0.935 < np.mean((low <= truth) & (truth <= high)) < 0.975  # Monte Carlo error .0035


def test_the_projection_index_covers_with_few_participants() -> None:
    """Catches the same in the mean of two shares, of which participants who project have both high or both low."""
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(400):
        own = np.repeat(rng.normal(0.6, 0.8, 8), 20)
        said = rng.random(160) < expit(own)
        kinds = np.tile(np.repeat(["std_correct", "std_incorrect"], 10), 8)
        frame = pd.DataFrame(
            {"participant": np.repeat(np.arange(8), 20), "condition": "none", "trial_type": kinds}
        ).assign(correct=np.where(kinds == "std_correct", said, ~said).astype(int))
        covered.append(projection.table(frame).iloc[0])
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    truth = expit(0.6 + 0.8 * nodes) @ weights / weights.sum()
    table = pd.DataFrame(covered)
    assert 0.92 < ((table["low"] <= truth) & (truth <= table["high"])).mean() < 0.98  # Monte Carlo error .011


def test_table_of_a_study() -> None:
    data = responses.prepare(study(32, 8, 6, seed=4)).frame
    table = accuracies.accuracy(data)
    assert list(table["condition"].unique()) == ["none", "saliency", "examples", "both"]
    plain = data.groupby(["condition", "trial_type"], observed=True)["correct"].mean()
    for row in table.itertuples():
        assert row.accuracy == pytest.approx(plain[row.condition, row.trial_type])
        assert row.low <= row.accuracy <= row.high
        assert (row.participants, row.responses) == (8, 48)


@pytest.mark.parametrize(("level", "z"), [(0.95, 1.959964), (0.5, 0.674490)])
def test_interval_has_the_asked_coverage(level: float, z: float) -> None:
    # Oracle: with 400 people the limits are those of a normal with the closed-form standard error.
    frame = study(400, 8, 10, seed=4).assign(saliency=0, examples=0)
    data = responses.prepare(frame).frame
    for row in accuracies.accuracy(data, level=level).itertuples():
        means = data[data["trial_type"] == row.trial_type].groupby("participant")["correct"].mean().to_numpy()
        assert (row.high - row.low) / 2 == pytest.approx(z * means.std(ddof=1) / 20, rel=0.02)


@pytest.mark.parametrize("bad", [1.0, 95])
def test_bad_settings_are_refused(bad: float) -> None:
    with pytest.raises(ForetellError, match="needs a level in"):
        accuracies.accuracy(responses.prepare(study(seed=4)).frame, level=bad)
