"""Intervals against lme4's numbers and against the likelihood itself."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

from core.errors import ForetellError
from study.analysis.models import intervals, mixed
from study.analysis.responses import reading as responses
from tests.study.analysis.simulated import TYPES, study

FORMULA = "correct ~ trial_type + saliency + (1|participant)"


def factor(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(trial_type=pd.Categorical(frame["trial_type"], categories=list(TYPES)))


@pytest.mark.real
def test_profile_of_cbpp(real) -> None:
    # Oracle: confint(glmer(cbind(incidence, size - incidence) ~ period + (1 | herd), cbpp, binomial)), lme4 1.1-31.
    frame = responses.table(real / "responses" / "cbpp.csv", factors=("period",))
    model = mixed.fit(frame, "cbind(incidence, size - incidence) ~ period + (1 | herd)")
    found = intervals.profile(frame, model)
    expected = [(-1.901156, -0.947795), (-1.616679, -0.407840), (-1.800917, -0.511610), (-2.500601, -0.800831)]
    np.testing.assert_allclose(found[["low", "high"]], expected, atol=2e-3)
    (sd,) = intervals.variance_components(frame, model).to_dict("records")
    assert (sd["low"], sd["high"], sd["method"]) == (
        pytest.approx(0.346094, abs=1e-3),
        pytest.approx(1.0999, abs=1e-3),
        "profile",
    )


def test_profile_is_what_a_likelihood_ratio_test_does_not_reject() -> None:
    # Oracle: the same model fitted without the term is the test at 0; with the term held at the bound, the quantile.
    frame = factor(study(24, 8, 8, seed=3))
    model = mixed.fit(frame, FORMULA)
    row = intervals.profile(frame, model, ["saliency"]).iloc[0]
    without = mixed.fit(frame, "correct ~ trial_type + (1|participant)")
    assert row["chisq"] == pytest.approx(2 * (model.loglik - without.loglik), abs=1e-4)
    assert row["p"] == pytest.approx(chi2.sf(row["chisq"], 1), rel=1e-12)
    assert row["low"] < row["estimate"] < row["high"]
    narrow = intervals.profile(frame, model, ["saliency"], level=0.5).iloc[0]
    assert row["low"] < narrow["low"] < narrow["high"] < row["high"]


def test_wald_and_profile_agree_where_there_is_much_data() -> None:
    frame = factor(study(60, 10, 20, seed=4))
    model = mixed.fit(frame, FORMULA)
    difference = intervals.profile(frame, model)[["low", "high"]] - intervals.wald(model)[["low", "high"]]
    assert np.abs(difference.to_numpy()).max() < 0.02


def test_a_variance_of_zero_has_an_interval_from_zero() -> None:
    frame = factor(study(24, 8, 6, seed=1, sd=0.0))
    same = pd.concat(
        [frame[frame["participant"] == "p0"].assign(participant=f"q{i}", saliency=i % 2) for i in range(10)]
    )
    model = mixed.fit(same, "correct ~ trial_type + saliency + (1|participant)")
    (sd,) = intervals.variance_components(same, model).to_dict("records")
    assert sd["low"] == 0 < sd["high"] < 1


def test_slopes_have_intervals_of_their_own() -> None:
    frame = study(40, 8, 12, seed=8, sd=0.8).assign(trial=lambda f: (f["trial"] - 18) / 10)
    model = mixed.fit(frame, "correct ~ trial + (trial|participant)")
    found = intervals.variance_components(frame, model)
    assert list(found["term"]) == ["(Intercept)", "trial"]
    assert (found["low"] <= found["sd"]).all()
    assert (found["sd"] < found["high"]).all()
    assert set(found["method"]) == {"profile"}


def test_what_diverges_has_no_interval_and_the_rest_has() -> None:
    frame = factor(study(12, 8, 8, seed=3, sd=0.8))
    frame.loc[frame["trial_type"] == "std_correct", "correct"] = 1
    model = mixed.fit(frame, FORMULA)
    found = intervals.profile(frame, model).set_index("term")
    assert found.loc["trial_typestd_correct", "estimate"] == math.inf
    assert found.loc["trial_typestd_correct", ["low", "high", "chisq", "p"]].isna().all()
    assert np.isfinite(found.drop("trial_typestd_correct").to_numpy(float)).all()
    certain = frame["trial_type"] != "std_correct"  # the other answers alone say the same of the other coefficients
    rest = frame[certain].assign(trial_type=lambda f: f["trial_type"].cat.remove_unused_categories())
    alone = intervals.profile(rest, mixed.fit(rest, FORMULA)).set_index("term")
    np.testing.assert_allclose(
        found.loc["saliency", ["low", "high"]].to_numpy(float),
        alone.loc["saliency", ["low", "high"]].to_numpy(float),
        atol=1e-3,
    )


def test_student_quantiles_of_a_linear_model() -> None:
    # Oracle: Satterthwaite's degrees of freedom are few with few people, so the interval is wider than the normal's.
    frame = factor(study(8, 8, 8, seed=3)).assign(time=lambda f: f["trial"] / 10 + f["saliency"] + f["correct"])
    model = mixed.fit(frame, "time ~ saliency + (1|participant)", family="gaussian", reml=True)
    c = model.coefficients[0]
    row = intervals.wald(model).iloc[0]
    assert c.df is not None
    assert row["high"] - row["estimate"] > 1.96 * c.se
    assert intervals.variance_components(frame, model)["method"].iloc[0] == "wald"


def test_refusals() -> None:
    frame = factor(study(12, 8, 8, seed=3))
    model = mixed.fit(frame, FORMULA)
    with pytest.raises(ForetellError, match="no coefficient 'examples'; it has"):
        intervals.profile(frame, model, ["examples"])
    with pytest.raises(ForetellError, match=r"level 95 .* between 0 and 1"):
        intervals.wald(model, 95)
