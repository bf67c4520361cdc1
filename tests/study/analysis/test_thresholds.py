"""Thresholds and abilities where responses choose the trials: closed forms, a peer, and what readers are told."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit, logit

from benchmarks.adaptive_studies import simulate_study
from study.adaptive.thresholds import average_reversals, fit_thresholds, list_reversals
from study.analysis.exploratory.analysis import AnalysedStudy, compute, list_analyses
from study.analysis.exploratory.thresholds import THRESHOLD, compare, estimate_each, tabulate
from study.analysis.report.captions import explain_figure_1
from study.analysis.responses.adaptive import NOT_COMPARED
from study.analysis.responses.reading import Responses, prepare


def test_reversals_are_where_the_staircase_turned() -> None:
    """Worked by hand. Catches a step at which nothing changes that counts as a turn, and the level after the turn."""
    assert list_reversals([3, 3, 4, 4, 5, 4, 4, 3, 4, 4, 3]) == [5, 3, 4]
    assert list_reversals([3, 3, 3]) == []


def test_the_last_reversals_are_averaged() -> None:
    """Worked by hand: of seven turns the first two are left out, and of the other five the last four are averaged."""
    levels = [3, 4, 3, 5, 3, 4, 2, 5, 4]
    assert list_reversals(levels) == [4, 3, 5, 3, 4, 2, 5]
    mean, se, count = average_reversals(levels)
    assert (mean, count) == (3.5, 4)
    assert se == pytest.approx(np.std([3, 4, 2, 5], ddof=1) / 2)
    assert average_reversals([3, 4, 3, 4])[2] == 0


def test_thresholds_are_those_of_a_logistic_regression() -> None:
    """Compares with statsmodels' GLM with an intercept for each participant, and with planted thresholds.

    Catches a threshold at half correct instead of the target, standard errors of intercepts, and an infinite
    estimate of one participant with equal responses that spoils the fit of the others.
    """
    rng = np.random.default_rng(4)
    people = np.repeat(np.arange(30), 60)
    planted = rng.normal(3, 0.8, 30)
    levels = rng.integers(1, 6, len(people)).astype(float)
    right = rng.random(len(people)) < expit(1.2 * (planted[people] - levels) + logit(0.7071))
    made = fit_thresholds(people, levels, right, 0.7071)
    dummies = (people[:, None] == np.arange(30)).astype(float)
    peer = sm.GLM(right.astype(float), np.column_stack([dummies, -levels]), family=sm.families.Binomial()).fit()
    slope = peer.params[-1]
    assert made.slope == pytest.approx(slope, abs=1e-4)
    assert made.values == pytest.approx((peer.params[:-1] - logit(0.7071)) / slope, abs=1e-3)
    p = peer.fittedvalues
    each = [np.sum((p * (1 - p))[people == k]) for k in range(30)]
    assert made.ses == pytest.approx(1 / (slope * np.sqrt(each)), rel=1e-3)
    assert np.mean(np.abs(made.values - planted) < 1.96 * made.ses) > 0.85
    one_more = fit_thresholds(
        np.append(people, [30] * 5), np.append(levels, [3.0] * 5), np.append(right, [True] * 5), 0.7071
    )
    assert np.isnan(one_more.values[-1])
    assert one_more.values[:-1] == pytest.approx(made.values, abs=1e-6)


def test_no_threshold_where_difficulty_says_nothing() -> None:
    """Responses that become more often correct with the level. Catches a threshold from a slope the wrong way."""
    people, levels = np.repeat(np.arange(10), 40), np.tile([1.0, 2.0, 3.0, 4.0], 100)
    right = np.random.default_rng(0).random(400) < expit(levels - 2.5)
    made = fit_thresholds(people, levels, right, 0.7)
    assert made.slope < 0
    assert np.isnan(made.values).all()


@pytest.fixture(scope="module", params=["staircase", "information"])
def responses(request: pytest.FixtureRequest) -> Responses:
    """Of a simulated study whose saliency maps help by 1.5 log-odds."""
    frame = simulate_study(request.param, 1.5, 16, np.random.default_rng(8))
    reason = "information" if request.param == "information" else "same"
    return prepare(frame.assign(chosen_by=reason, mode="sim"))


def test_conditions_are_compared_by_thresholds_and_abilities(responses: Responses) -> None:
    """Catches estimates of another participant, the first response for the last, and a difference with another sign."""
    frame = responses.every
    each = estimate_each(frame.sample(frac=1, random_state=1))
    assert len(each) == 32
    for row in each.to_dict("records"):
        own = frame[frame["participant"] == row["participant"]].sort_values("trial")
        assert row["ability"] == own["ability"].iloc[-1]
        assert row["accuracy"] == pytest.approx(own["correct"].mean())
        if THRESHOLD in each:
            turned = average_reversals(own["aimed_level"].tolist())[0]
            assert row["reversal_level"] == pytest.approx(turned, nan_ok=True)
    table, differences = tabulate(each).set_index("condition"), compare(each)
    means = each.groupby("condition")["ability"].mean()
    assert table.loc["saliency", "ability"] == pytest.approx(means["saliency"])
    of_ability = differences[differences["measure"] == "ability"].iloc[0]
    assert of_ability["difference"] == pytest.approx(means["saliency"] - means["none"])
    assert of_ability["difference"] == pytest.approx(1.5, abs=3 * of_ability["se"] + 0.4)
    assert of_ability["p_holm"] < 0.01


def test_readers_are_told_that_accuracy_does_not_compare(responses: Responses) -> None:
    """Catches results without the warning, and the analyses in studies whose trials were not chosen."""
    assert any(NOT_COMPARED in line for line in responses.messages)
    assert NOT_COMPARED in explain_figure_1(responses.every, responses.task)
    study = AnalysedStudy(responses)
    names = [name for name in list_analyses(study) if name.startswith("adaptive")]
    assert names == ["adaptive_participants", "adaptive", "adaptive_differences"]
    for name in names:
        made = compute(name, study)
        assert len(made.table)
        assert "correct" in made.says or name == "adaptive_differences"
    assert "Ability" in compute("adaptive", study).conclusion or "Threshold" in compute("adaptive", study).conclusion
    drawn = prepare(responses.every.drop(columns=["chosen_by"]))
    assert not any(name.startswith("adaptive") for name in list_analyses(AnalysedStudy(drawn)))
    assert not any(NOT_COMPARED in line for line in drawn.messages)
