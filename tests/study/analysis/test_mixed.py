"""Fits against a slow re-implementation, lme4's numbers, invariances; and what is said of bad ones."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from core.errors import ForetellError
from study.analysis.models import mixed
from study.analysis.responses import reading as responses
from tests.study.analysis.simulated import TYPES, laplace, slow_fit, study

FORMULA = "correct ~ trial_type + saliency + (1|participant) + (1|category)"


def factor(frame: pd.DataFrame) -> pd.DataFrame:
    """With the reference level of the study."""
    return frame.assign(trial_type=pd.Categorical(frame["trial_type"], categories=list(TYPES)))


def parts(frame: pd.DataFrame) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Design of FORMULA, groups and outcome, built by hand."""
    design = np.column_stack(
        [
            np.ones(len(frame)),
            frame["trial_type"] == "std_incorrect",
            frame["trial_type"] == "std_correct",
            frame["saliency"],
        ]
    ).astype(float)
    groups = [pd.factorize(frame[name])[0] for name in ("participant", "category")]
    return design, groups, frame["correct"].to_numpy(float)


def estimates(model: mixed.MixedModel) -> np.ndarray:
    return np.array([c.estimate for c in model.coefficients])


def test_agrees_with_a_slow_laplace_fit() -> None:
    # Oracle: tests.study.analysis.simulated, written from the definition. Catches a wrong objective, scale or order.
    frame = factor(study(12, 8, 8, seed=3, sd=0.8))
    model = mixed.fit(frame, FORMULA)
    beta, se, sds, loglik = slow_fit(*parts(frame))
    assert [c.term for c in model.coefficients] == [
        "(Intercept)",
        "trial_typestd_incorrect",
        "trial_typestd_correct",
        "saliency",
    ]
    np.testing.assert_allclose(estimates(model), beta, atol=1e-5, rtol=0)
    np.testing.assert_allclose([c.se for c in model.coefficients], se, atol=1e-5, rtol=0)
    np.testing.assert_allclose([r.sd for r in model.random], sds, atol=1e-5, rtol=0)
    assert model.loglik == pytest.approx(loglik, abs=1e-7)
    assert [r.group for r in model.random] == ["participant", "category"]
    assert (model.df, model.n, model.converged, model.messages) == (6, 288, True, ())


def test_p_is_two_sided_normal() -> None:
    model = mixed.fit(factor(study(seed=5)), FORMULA)
    for c in model.coefficients:
        assert c.z == pytest.approx(c.estimate / c.se)
        assert c.p == pytest.approx(2 * norm.cdf(-abs(c.z)), rel=1e-12)


def test_rows_and_labels_do_not_matter() -> None:
    frame = factor(study(seed=7))
    model = mixed.fit(frame, FORMULA)
    shuffled = frame.iloc[np.random.default_rng(1).permutation(len(frame))]
    renamed = shuffled.assign(participant="z" + shuffled["participant"].str[::-1], category=shuffled["category"] + "é")
    other = mixed.fit(renamed, FORMULA)
    np.testing.assert_allclose(estimates(other), estimates(model), atol=1e-5, rtol=0)
    assert other.loglik == pytest.approx(model.loglik, abs=1e-7)


def test_scaling_a_predictor_scales_its_coefficient() -> None:
    frame = factor(study(seed=7))
    model, other = mixed.fit(frame, FORMULA), mixed.fit(frame.assign(saliency=frame["saliency"] * 100), FORMULA)
    assert other.coefficients[-1].estimate * 100 == pytest.approx(model.coefficients[-1].estimate, abs=1e-4)
    assert other.coefficients[-1].z == pytest.approx(model.coefficients[-1].z, abs=1e-3)
    assert other.loglik == pytest.approx(model.loglik, abs=1e-6)


def test_swapping_right_and_wrong_turns_the_signs() -> None:
    frame = factor(study(seed=7))
    model, other = mixed.fit(frame, FORMULA), mixed.fit(frame.assign(correct=1 - frame["correct"]), FORMULA)
    np.testing.assert_allclose(estimates(other), -estimates(model), atol=1e-5, rtol=0)


def test_separation_gives_the_limit_and_no_p_value() -> None:
    # Oracle: the slow Laplace likelihood with the diverging coefficient held at 35: its supremum within 1e-9.
    frame = factor(study(12, 8, 8, seed=3, sd=0.8))
    frame.loc[frame["trial_type"] == "std_correct", "correct"] = 1
    model = mixed.fit(frame, FORMULA)
    by_term = {c.term: c for c in model.coefficients}
    infinite = by_term["trial_typestd_correct"]
    assert (infinite.se, infinite.z, infinite.p) == (None, None, None)
    assert infinite.estimate > 10
    assert model.limit(infinite) == math.inf
    assert dict(model.diverging) == {"trial_typestd_correct": 1}
    assert not model.converged
    assert "trial_type std_correct, saliency 0: all 48 responses are correct" in model.messages[0]
    assert "no p-value: AI right." in model.messages[0]
    assert all(c.p is not None for term, c in by_term.items() if term != "trial_typestd_correct")
    design, groups, outcome = parts(frame)
    far = estimates(model)
    far[2] = 35.0
    held = laplace(far, np.array([r.sd for r in model.random]), design, groups, outcome)
    assert model.loglik == pytest.approx(held, abs=1e-6)
    for j in (0, 1, 3):  # and it is the maximum: any step aside is worse
        for h in (-0.02, 0.02):
            aside = far.copy()
            aside[j] += h
            assert laplace(aside, np.array([r.sd for r in model.random]), design, groups, outcome) < held
    assert model.df == 6


def test_separation_of_the_reference_level() -> None:
    # The other levels are then known only against something infinite: all three coefficients diverge.
    frame = factor(study(12, 8, 8, seed=3))
    frame.loc[frame["trial_type"] == "adv_incorrect", "correct"] = 0
    model = mixed.fit(frame, FORMULA)
    assert dict(model.diverging) == {"(Intercept)": -1, "trial_typestd_incorrect": 1, "trial_typestd_correct": 1}
    assert "trial_type adv_incorrect, saliency 0: all 48 responses are incorrect" in model.messages[0]
    assert [(c.se, c.z, c.p) for c in model.coefficients[:3]] == [(None, None, None)] * 3
    assert model.coefficients[-1].p is not None


def test_two_certain_cells_leave_the_sign_between_them_open() -> None:
    frame = factor(study(12, 8, 8, seed=3))
    frame.loc[frame["trial_type"] == "std_correct", "correct"] = 1
    model = mixed.fit(frame, "correct ~ trial_type * saliency + (1|participant)")
    assert model.diverging["trial_typestd_correct"] == 1
    assert model.diverging["trial_typestd_correct:saliency"] == 0
    undecided = next(c for c in model.coefficients if c.term == "trial_typestd_correct:saliency")
    assert math.isnan(model.limit(undecided))


def test_json_has_only_numbers_and_null() -> None:
    frame = factor(study(12, 8, 8, seed=3))
    frame.loc[frame["trial_type"] == "std_correct", "correct"] = 1
    content = mixed.fit(frame, FORMULA).as_dict()
    assert list(content) == ["coefficients", "random", "loglik", "df", "n", "converged", "messages"]
    assert list(content["coefficients"][0]) == ["term", "estimate", "se", "z", "p"]
    assert list(content["random"][0]) == ["group", "sd"]
    json.dumps(content, allow_nan=False)


def test_boundary_fit_is_said_in_words() -> None:
    # Everybody answers the same way to the same items: between people there is less than chance variation.
    frame = factor(study(24, 8, 6, seed=1, sd=0.0))
    first = frame[frame["participant"] == "p0"]
    same = pd.concat([first.assign(participant=f"q{i}", saliency=i % 2) for i in range(10)])
    model = mixed.fit(same, "correct ~ trial_type + saliency + (1|participant)")
    assert model.random[0].sd < 1e-4
    assert any(m.startswith("Boundary (singular) fit") and "participant" in m for m in model.messages)


def test_repeated_columns_are_named_and_dropped() -> None:
    frame = factor(study(seed=7))
    frame["also"] = 1 - frame["saliency"]
    model = mixed.fit(frame, "correct ~ trial_type + saliency + also + (1|participant)")
    without = mixed.fit(frame, "correct ~ trial_type + saliency + (1|participant)")
    assert model.dropped == ("also",)
    assert ": also." in model.messages[0]
    assert (model.df, len(model.coefficients)) == (without.df, 4)
    assert model.loglik == pytest.approx(without.loglik, abs=1e-7)


def test_counts_are_as_good_as_single_answers() -> None:
    # The same coefficients from grouped rows; the log-likelihood differs by the binomial coefficients only.
    frame = factor(study(seed=9))
    grouped = frame.groupby(["participant", "trial_type"], observed=True)["correct"].agg(["sum", "count"]).reset_index()
    single = mixed.fit(frame, "correct ~ trial_type + (1|participant)")
    for formula in (
        "cbind(sum, rest) ~ trial_type + (1|participant)",
        "cbind(sum, count - sum) ~ trial_type + (1|participant)",
    ):
        model = mixed.fit(grouped.assign(rest=grouped["count"] - grouped["sum"]), formula)
        np.testing.assert_allclose(estimates(model), estimates(single), atol=1e-5, rtol=0)
        ways = sum(math.log(math.comb(n, k)) for n, k in zip(grouped["count"], grouped["sum"], strict=True))
        assert model.loglik == pytest.approx(single.loglik + ways, abs=1e-6)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("correct", "has no '~'"),
        ("correct ~ nothing + (1|participant)", "nothing"),
        ("correct ~ trial_type + (1|nobody)", "groups by 'nobody', which is no column"),
        ("correct ~ 1 + offset(three * 2) + (1|participant)", r"offset that is no column: write offset\(x\)"),
        ("correct ~ (1|", "cannot be fitted"),
        ("cbind(correct, nothing - correct) ~ 1 + (1|participant)", "'nothing', which is no column"),
        ("gap ~ trial_type + (1|participant)", "'gap' has 3 missing values"),
        ("three ~ trial_type + (1|participant)", "must be 0 or 1"),
        ("same ~ trial_type + (1|participant)", "predicts every response with certainty"),
        ("correct ~ who + (1|participant)", "'who' has 432 levels, too many for fixed effects"),
    ],
)
def test_bad_input_is_refused_in_words(formula: str, said: str) -> None:
    frame = factor(study(seed=7)).assign(gap=lambda f: f["correct"].astype(float), three=np.arange(432) % 3, same=1)
    frame["who"] = [f"w{i}" for i in range(432)]
    frame.loc[:2, "gap"] = np.nan
    with pytest.raises(ForetellError, match=said):
        mixed.fit(frame, formula)


@pytest.mark.parametrize(
    ("family", "value", "said"),
    [
        ("binomial", 2, r"'correct' must be 0 or 1 in a binomial model, but 1 of its values are not \(row 4: 2\)"),
        ("poisson", -1, "must be 0 or more in a poisson model"),
        ("gamma", 0, "must be above 0 in a gamma model"),
    ],
)
def test_a_response_its_family_does_not_know(
    family: str, value: int, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Catches the stack that the fitting library prints beside the sentence."""
    frame = study(seed=7).assign(correct=1)
    frame.loc[3, "correct"] = value
    with pytest.raises(ForetellError, match=said):
        mixed.fit(frame, "correct ~ saliency + (1|participant)", family=family)
    assert capfd.readouterr().err == ""


def test_no_rows() -> None:
    with pytest.raises(ForetellError, match="no rows"):
        mixed.fit(factor(study(seed=7)).head(0), FORMULA)


@pytest.mark.real
def test_verbal_aggression(real) -> None:
    # lme4 with its default tolerances (responses/README.md), which stop early: the slow Laplace likelihood is
    # -4075.699865 at lme4's own parameters, where lme4 says -4075.700245. So lme4 holds to 4e-4, the slow one to 1e-6.
    frame = responses.table(real / "responses" / "verbagg.csv")
    model = mixed.fit(frame, "r2 ~ Anger + Gender + btype + situ + (1|id) + (1|item)")
    reference = np.array([0.199276, 0.057409, 0.320626, -1.058657, -2.105079, -1.055274])
    variances = np.array([1.794355, 0.245267])
    assert model.loglik == pytest.approx(-4075.700245, abs=5e-4)
    np.testing.assert_allclose(estimates(model), reference, atol=4e-4, rtol=0)
    np.testing.assert_allclose([r.variance for r in model.random], variances, atol=1e-3, rtol=0)

    dummies = [frame["Gender"] == "M", frame["btype"] == "scold", frame["btype"] == "shout", frame["situ"] == "self"]
    design = np.column_stack([np.ones(len(frame)), frame["Anger"], *dummies]).astype(float)
    groups = [pd.factorize(frame[name])[0] for name in ("id", "item")]
    outcome = (frame["r2"] == "Y").to_numpy(float)
    ours = laplace(estimates(model), np.array([r.sd for r in model.random]), design, groups, outcome)
    assert model.loglik == pytest.approx(ours, abs=1e-6)
    assert ours > laplace(reference, np.sqrt(variances), design, groups, outcome)


@pytest.mark.real
def test_cbpp(real) -> None:
    # lme4 (responses/README.md).
    frame = responses.table(real / "responses" / "cbpp.csv", factors=("period",))
    model = mixed.fit(frame, "cbind(incidence, size - incidence) ~ period + (1 | herd)")
    assert model.loglik == pytest.approx(-92.026566, abs=1e-3)
    np.testing.assert_allclose(estimates(model), [-1.3983, -0.9919, -1.1282, -1.5797], atol=1e-3, rtol=0)
    assert model.random[0].sd == pytest.approx(0.6421, abs=1e-3)


@pytest.mark.parametrize(("one", "zero"), [("yes", "no"), ("correct", "incorrect"), ("Ja", "nein"), ("seen", "lost")])
def test_a_response_of_two_words_is_coded_and_said(one: str, zero: str) -> None:
    """The same fit as with 0 and 1, and a message tells. Catches known words that the alphabet exchanges."""
    frame, formula = study(12, 8, 8, seed=3, sd=0.8), "correct ~ saliency + (1|participant)"
    words = frame.assign(correct=np.where(frame["correct"] == 1, one, zero))
    plain, coded = mixed.fit(frame, formula), mixed.fit(words, formula)
    assert coded.messages[0] == f"correct: {zero!r} counts as 0 and {one!r} as 1."
    np.testing.assert_allclose(estimates(coded), estimates(plain), rtol=1e-9)


def test_a_factor_that_is_no_column_is_named(tmp_path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ForetellError, match=r"data.csv has no column 'c' to take as a factor; it has a, b"):
        responses.table(tmp_path / "data.csv", ("c",))
    table = responses.table(tmp_path / "data.csv", ("b",))
    assert pd.api.types.is_numeric_dtype(table["a"])
    assert not pd.api.types.is_numeric_dtype(table["b"])


def test_a_factor_of_a_thousand_levels_is_a_random_term() -> None:
    frame = study(40, 1000, 20, seed=3)
    model = mixed.fit(frame, "correct ~ saliency + (1|participant) + (1|category)")
    assert model.converged
    assert len(model.blocks[1].modes) > 800


def test_one_person_has_no_variance_between_people() -> None:
    frame = factor(study(24, 8, 20, seed=7))
    one = frame[frame["participant"] == "p0"]
    model = mixed.fit(one, "correct ~ trial_type + (1|participant)")
    assert model.random == ()
    assert "only one level" in model.messages[0]


def test_separation_with_a_random_slope() -> None:
    frame = study(24, 8, 20, seed=3, sd=0.8).assign(late=lambda f: f["trial"] / 60)
    frame.loc[frame["trial_type"] == "std_correct", "correct"] = 1
    model = mixed.fit(factor(frame), "correct ~ trial_type + late + (late|participant)")
    assert dict(model.diverging) == {"trial_typestd_correct": 1}
    assert [(r.group, r.term) for r in model.random] == [("participant", "(Intercept)"), ("participant", "late")]
    rest = frame[frame["trial_type"] != "std_correct"]
    alone = mixed.fit(rest, "correct ~ trial_type + late + (late|participant)")
    assert model.loglik == pytest.approx(alone.loglik, abs=1e-6)
    assert model.random[1].sd == pytest.approx(alone.random[1].sd, abs=1e-3)


def test_warnings_say_only_what_is_known() -> None:
    """Catches the wrong reason for a left-out column, and disbelief in a predictor of small units."""
    frame = factor(study(seed=3))
    twice = frame.assign(tens=frame["saliency"] * 10.0)
    said = " ".join(mixed.fit(twice, "correct ~ saliency + tens + (1|participant)").messages)
    assert "collinear with other columns" in said
    units = frame.assign(small=frame["saliency"] / 1000.0)
    model = mixed.fit(units, "correct ~ small + (1|participant)")
    assert abs(model.coefficients[1].estimate) > 100
    assert "unit" in " ".join(model.messages)
    assert "believe" not in " ".join(model.messages)
