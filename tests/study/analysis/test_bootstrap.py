"""Intervals of mean accuracy: closed forms for balanced data, and why people are resampled, not answers."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis import bootstrap, responses
from tests.study.analysis.simulated import study


def balanced(people: int, responses: int, rng: np.random.Generator, spread: float) -> np.ndarray:
    """(people, 1) right answers of people whose ability varies uniformly by +- spread around .6."""
    return rng.binomial(responses, rng.uniform(0.6 - spread, 0.6 + spread, people))[:, None].astype(float)


def test_spread_of_resamples_is_that_of_the_mean_of_participant_means() -> None:
    # Closed form (Efron & Tibshirani, 1993, eq. 5.12): sqrt(sum (m_i - m)^2 / P^2). Catches resampling of rows.
    rng = np.random.default_rng(1)
    right = balanced(40, 30, rng, 0.35)
    draws = bootstrap.resample(right, np.full_like(right, 30.0), 40_000, rng)
    means = right[:, 0] / 30
    exact = np.sqrt(np.sum((means - means.mean()) ** 2)) / 40
    assert draws.std() == pytest.approx(exact, rel=0.02)
    assert draws.mean() == pytest.approx(means.mean(), abs=4 * exact / np.sqrt(40_000))
    by_rows = np.sqrt(means.mean() * (1 - means.mean()) / (40 * 30))
    assert by_rows < 0.6 * exact  # what resampled answers would claim


def test_intervals_cover_and_those_of_rows_do_not() -> None:
    # 300 studies of 40 people: coverage of the truth, .6, by people and by answers.
    rng = np.random.default_rng(2)
    covered = {"people": 0, "responses": 0}
    for _ in range(300):
        right = balanced(40, 30, rng, 0.35)
        by_people = bootstrap.resample(right, np.full_like(right, 30.0), 500, rng)
        low, high = np.quantile(by_people, [0.025, 0.975])
        covered["people"] += low <= 0.6 <= high
        by_answers = rng.binomial(1200, right.sum() / 1200, 500) / 1200
        low, high = np.quantile(by_answers, [0.025, 0.975])
        covered["responses"] += low <= 0.6 <= high
    assert covered["people"] / 300 > 0.90
    assert covered["responses"] / 300 < 0.80


def test_unequal_answers_are_weighted_as_answers() -> None:
    right, answers = np.array([[1.0], [0.0]]), np.array([[1.0], [3.0]])
    draws = bootstrap.resample(right, answers, 1000, np.random.default_rng(3))
    assert set(np.unique(draws)) == {0.0, 0.25, 1.0}


def test_people_without_answers_in_a_cell_leave_gaps() -> None:
    right, answers = np.array([[1.0], [0.0]]), np.array([[2.0], [0.0]])
    draws = bootstrap.resample(right, answers, 1000, np.random.default_rng(3))
    assert np.isnan(draws).any()
    assert set(np.unique(draws[~np.isnan(draws)])) == {0.5}


def test_chunks_do_not_change_the_shape_of_things(monkeypatch: pytest.MonkeyPatch) -> None:
    right = balanced(10, 30, np.random.default_rng(1), 0.3)
    whole = bootstrap.resample(right, np.full_like(right, 30.0), 1001, np.random.default_rng(5))
    monkeypatch.setattr(bootstrap, "_CHUNK", 70)
    parts = bootstrap.resample(right, np.full_like(right, 30.0), 1001, np.random.default_rng(5))
    np.testing.assert_array_equal(whole, parts)


def test_table_of_a_study() -> None:
    data = responses.prepare(study(32, 8, 6, seed=4)).frame
    table = bootstrap.accuracy(data, rng=np.random.default_rng(0), resamples=500)
    assert list(table["condition"].unique()) == ["none", "saliency", "examples", "both"]
    plain = data.groupby(["condition", "trial_type"], observed=True)["correct"].mean()
    for row in table.itertuples():
        assert row.accuracy == pytest.approx(plain[row.condition, row.trial_type])
        assert row.low <= row.accuracy <= row.high
        assert (row.participants, row.responses) == (8, 48)


@pytest.mark.parametrize(("level", "z"), [(0.95, 1.959964), (0.5, 0.674490)])
def test_interval_has_the_asked_coverage(level: float, z: float) -> None:
    # Oracle: with 400 people the percentiles are those of a normal with the closed-form standard error.
    frame = study(400, 8, 10, seed=4).assign(saliency=0, examples=0)
    data = responses.prepare(frame).frame
    table = bootstrap.accuracy(data, rng=np.random.default_rng(0), level=level)
    for row in table.itertuples():
        means = data[data["trial_type"] == row.trial_type].groupby("participant")["correct"].mean().to_numpy()
        se = np.sqrt(np.sum((means - means.mean()) ** 2)) / 400
        assert row.accuracy - row.low == pytest.approx(z * se, rel=0.08)
        assert row.high - row.accuracy == pytest.approx(z * se, rel=0.08)


def test_same_seed_same_interval() -> None:
    data = responses.prepare(study(seed=4)).frame
    first, again, other = (bootstrap.accuracy(data, rng=np.random.default_rng(s), resamples=300) for s in (1, 1, 2))
    pd.testing.assert_frame_equal(first, again)
    assert not first["low"].equals(other["low"])


def test_ten_thousand_resamples_of_the_papers_design_take_no_second() -> None:
    data = responses.prepare(study(160, 30, 30, seed=4)).frame
    start = time.process_time()
    bootstrap.accuracy(data, rng=np.random.default_rng(0))
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize("bad", [{"level": 1.0}, {"level": 95}, {"resamples": 0}])
def test_bad_settings_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ForetellError, match="needs a level in"):
        bootstrap.accuracy(responses.prepare(study(seed=4)).frame, rng=np.random.default_rng(0), **bad)
