"""Probabilities, effects and explained variance against other ways to the same number."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import expit

from core.errors import ForetellError
from study.analysis.means.effects import average_effects
from study.analysis.means.means import estimate_means
from study.analysis.models import explained, mixed
from tests.study.analysis.simulated import TYPES, study

FORMULA = "correct ~ trial_type + saliency + (1|participant) + (1|category)"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    made = study(24, 8, 8, seed=3, sd=0.8)
    return made.assign(trial_type=pd.Categorical(made["trial_type"], categories=list(TYPES)))


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> mixed.MixedModel:
    return mixed.fit(frame, FORMULA)


def _cells(frame: pd.DataFrame, model: mixed.MixedModel) -> pd.DataFrame:
    return estimate_means(frame, model, "trial_type * saliency", scale="population", contrasts=[]).means


def test_probabilities_are_averages_over_people(frame: pd.DataFrame, model: mixed.MixedModel) -> None:
    # Oracle: drawn people and categories, a million of them.
    rng = np.random.default_rng(1)
    sd = math.hypot(*(r.sd for r in model.random))
    drawn = expit(model.coefficients[0].estimate + rng.normal(0, sd, 1_000_000))
    first = _cells(frame, model).iloc[0]
    assert (first["trial_type"], first["saliency"]) == ("adv_incorrect", 0)
    assert first["estimate"] == pytest.approx(drawn.mean(), abs=4 * drawn.std() / 1000)
    assert first["low"] < first["estimate"] < first["high"]


def test_effects_without_variance_are_those_of_a_logit_model() -> None:
    # Oracle: statsmodels' average marginal effects of the model without random effects.
    frame = study(30, 8, 8, seed=2, sd=0.0)
    same = pd.concat(
        [frame[frame["participant"] == "p0"].assign(participant=f"q{i}", saliency=i % 2) for i in range(10)]
    )
    rng = np.random.default_rng(0)
    same["x"] = np.tile(rng.normal(size=24), 10)
    model = mixed.fit(same, "correct ~ saliency + x + (1|participant)")
    assert model.random[0].sd < 1e-4
    plain = sm.Logit(same["correct"], sm.add_constant(same[["saliency", "x"]])).fit(disp=False)
    theirs = plain.get_margeff(dummy=True)
    ours = average_effects(same, model, ["saliency"]).iloc[0]
    assert ours["effect"] == pytest.approx(theirs.margeff[0], abs=1e-5)
    assert ours["se"] == pytest.approx(theirs.margeff_se[0], rel=1e-3)


def test_effects_are_differences_of_predictions(frame: pd.DataFrame, model: mixed.MixedModel) -> None:
    cells = _cells(frame, model).set_index(["trial_type", "saliency"])["estimate"]
    effects = average_effects(frame, model, ["saliency"], by="trial_type").set_index("trial_type")
    for kind in TYPES:
        assert effects.loc[kind, "effect"] == pytest.approx(cells[kind, 1] - cells[kind, 0], abs=1e-12)
    kinds = average_effects(frame, model, ["trial_type"])
    assert list(kinds["value"]) == ["std_incorrect", "std_correct"]
    with pytest.raises(ForetellError, match="'examples' is no predictor"):
        average_effects(frame, model, ["examples"])


def test_standard_errors_by_drawing_coefficients(frame: pd.DataFrame, model: mixed.MixedModel) -> None:
    # Oracle: the spread of the effect over coefficients drawn from their normal distribution.
    rng = np.random.default_rng(2)
    drawn = rng.multivariate_normal([c.estimate for c in model.coefficients], model.covariance, 4000)
    sd = math.hypot(*(r.sd for r in model.random))
    people = rng.normal(0, sd, 500)
    effects = [np.mean(expit(b[0] + b[3] + people) - expit(b[0] + people)) for b in drawn]
    by_type = average_effects(frame, model, ["saliency"], by="trial_type").set_index("trial_type")
    assert by_type.loc["adv_incorrect", "se"] == pytest.approx(np.std(effects), rel=0.06)


def test_explained_variance(frame: pd.DataFrame, model: mixed.MixedModel) -> None:
    # Oracle: the formulas of Nakagawa et al. (2017), written out.
    design = np.column_stack(
        [np.ones(len(frame)), frame["trial_type"] == TYPES[1], frame["trial_type"] == TYPES[2], frame["saliency"]]
    )
    fixed = np.var(design @ [c.estimate for c in model.coefficients], ddof=1)
    random = sum(r.variance for r in model.random)
    found = explained.compute_explained_variance(frame, model).set_index("method")
    p = frame["correct"].mean()
    for method, single in (("theoretical", math.pi**2 / 3), ("delta", 1 / (p * (1 - p)))):
        assert found.loc[method, "r2_marginal"] == pytest.approx(fixed / (fixed + random + single))
        assert found.loc[method, "r2_conditional"] == pytest.approx((fixed + random) / (fixed + random + single))
        assert found.loc[method, "icc"] == pytest.approx(random / (random + single))
    shares = [f"{100 * found.loc['theoretical', name]:.1f}% " for name in ("r2_marginal", "r2_conditional")]
    assert all(share in explained.describe(frame, model) for share in shares)


def test_a_separated_model_explains_no_finite_share(frame: pd.DataFrame) -> None:
    certain = frame.assign(correct=frame["correct"].where(frame["trial_type"] != "std_correct", 1))
    model = mixed.fit(certain, FORMULA)
    with pytest.raises(ForetellError, match="infinite coefficients"):
        explained.compute_explained_variance(certain, model)
    assert explained.describe(certain, model) == ""
