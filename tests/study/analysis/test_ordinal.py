"""Ordinal mixed models: against R's ordinal, logistic models, difference quotients and effects that are known."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli.main import build_app
from study.analysis.means.equivalence import compute_equivalence
from study.analysis.means.means import estimate_means
from study.analysis.models import denominators, intervals, laplace, mixed, proportional
from study.analysis.models.densities import CumulativeLogit
from study.analysis.models.records import MixedModel

MEAN_LEVELS = Path(__file__).parent / "oracles" / "mean_levels.json"
ORACLES = {case["name"]: case for case in json.loads((Path(__file__).parent / "oracles" / "ordinal.json").read_text())}


def load(name: str) -> pd.DataFrame:
    frame = pd.DataFrame(ORACLES[name]["data"])
    return frame.assign(
        **{factor: pd.Categorical(frame[factor], levels) for factor, levels in ORACLES[name]["levels"].items()}
    )


def fit(frame: pd.DataFrame, formula: str, **settings: Any) -> MixedModel:
    return mixed.fit(frame, formula, family="ordinal", **settings)


def simulate(rng: np.random.Generator, people: int, items: int, effect: float) -> pd.DataFrame:
    """Levels 1 to 4 of participants in two conditions, who all see the same items."""
    frame = pd.DataFrame([(f"p{i}", f"i{j}", i % 2) for i in range(people) for j in range(items)])
    frame.columns = ["participant", "item", "shown"]
    own, of_item = rng.normal(0, 0.8, people), rng.normal(0, 0.5, items)
    eta = effect * frame["shown"] + np.repeat(own, items) + np.tile(of_item, people)
    return frame.assign(level=1 + np.searchsorted([-1.5, 0.0, 1.5], eta + rng.logistic(size=len(frame))))


@pytest.mark.parametrize("name", list(ORACLES))
def test_the_fit_is_that_of_clmm(name: str) -> None:
    """Catches another likelihood, sign or order of the thresholds, and standard errors of their logarithms. Oracle: R's
    ordinal::clmm, and clm without random terms (``oracles/ordinal.R``), which says the same of its own wine data."""
    theirs = ORACLES[name]
    model = fit(load(name), theirs["formula"])
    assert [c.term for c in model.coefficients] == np.atleast_1d(theirs["terms"]).tolist()
    assert model.thresholds[0].term == "1|2"
    for made, value, error in (
        (model.coefficients, theirs["estimate"], theirs["se"]),
        (model.thresholds, theirs["thresholds"], theirs["thresholds_se"]),
    ):
        np.testing.assert_allclose([c.estimate for c in made], np.atleast_1d(value), atol=1e-4)
        np.testing.assert_allclose([c.se for c in made], np.atleast_1d(error), atol=1e-4)
    assert (model.loglik, model.df) == pytest.approx((theirs["loglik"], theirs["df"]), abs=1e-5)
    random = theirs["random"] or {}
    np.testing.assert_allclose([r.sd for r in model.random], [sd for v in random.values() for sd in v["sd"]], atol=1e-4)
    if name == "confidence":
        correlation = random["participant"]["correlation"][1][0]
        assert model.correlations()[0]["correlation"] == pytest.approx(correlation, abs=1e-4)
    assert model.converged


def test_two_levels_are_a_logistic_model() -> None:
    """Catches a threshold that is the intercept without its sign; by the definition, against the binomial fit, slopes
    without correlation and an offset included."""
    frame = load("agreement").assign(head=lambda rows: rows["wrong"] * 0.3)
    frame["high"] = (frame["level"] > 2).astype(int)
    formula = "high ~ condition + wrong + offset(head) + (wrong || participant) + (1 | item)"
    ordinal, logistic = fit(frame, formula), mixed.fit(frame, formula)
    intercept, *others = logistic.coefficients
    assert ordinal.loglik == pytest.approx(logistic.loglik, abs=1e-5)
    (threshold,) = ordinal.thresholds
    assert threshold.term == "0|1"
    assert (-threshold.estimate, threshold.se) == pytest.approx((intercept.estimate, intercept.se), abs=1e-3)
    for one, other in zip(ordinal.coefficients, others, strict=True):
        assert (one.estimate, one.se) == pytest.approx((other.estimate, other.se), abs=1e-3)
    weights = np.eye(len(others))
    df = denominators.compute_df(logistic.parts, np.hstack([np.zeros((len(others), 1)), weights]))
    np.testing.assert_allclose(denominators.compute_df(ordinal.parts, weights), df, rtol=1e-2)
    for effect, other in zip(ordinal.random, logistic.random, strict=True):
        assert effect.sd == pytest.approx(other.sd, abs=1e-3)


def test_derivatives_are_those_of_the_density() -> None:
    """Catches a wrong sign or chain rule, also far out, by central differences in eta and in each own parameter."""
    rng, step = np.random.default_rng(1), 1e-5
    y, m, strata = np.repeat([1.0, 2.0, 3.0, 4.0], 5), rng.uniform(0.5, 2, 20), np.arange(20) % 2
    eta, own = np.tile([-9.0, -1.0, 0.3, 2.0, 9.0], 4), np.array([-1.2, 0.3, -0.7, -0.9, 0.1, -0.2])

    def compute(eta: np.ndarray, own: np.ndarray) -> np.ndarray:
        at = CumulativeLogit(strata=strata).at(own)
        first, second, _ = at.differentiate(eta, y, m)
        return np.array([at.log(eta, y, m), first, -second])

    density = CumulativeLogit(strata=strata).at(own)
    np.testing.assert_allclose(density.own, own)
    by_eta = (compute(eta + step, own) - compute(eta - step, own)) / (2 * step)
    first, second, third = density.differentiate(eta, y, m)
    np.testing.assert_allclose(by_eta, [first, -second, -third], rtol=1e-5, atol=1e-7)
    for k, shift in enumerate(np.eye(6) * step):
        by_own = (compute(eta, own + shift) - compute(eta, own - shift)) / (2 * step)
        log, slope, weight = (part[k] for part in density.differentiate_own(eta, y, m))
        np.testing.assert_allclose(by_own, [log, slope, -weight], rtol=1e-5, atol=1e-7)
    shares = [np.exp(density.log(eta, np.full(20, k), np.ones(20))) for k in (1.0, 2.0, 3.0, 4.0)]
    np.testing.assert_allclose(np.sum(shares, axis=0), 1.0)


def test_the_gradient_is_that_of_the_likelihood() -> None:
    """Catches a threshold's part of the gradient that leaves out the mode or the determinant; by differences."""
    frame = load("confidence")
    likelihood, at = laplace.of(frame, fit(frame, ORACLES["confidence"]["formula"]))
    at = at + np.random.default_rng(3).normal(0, 0.1, len(at))
    for k, shift in enumerate(np.eye(len(at)) * 1e-5):
        slope = (likelihood.at(at + shift).loglik - likelihood.at(at - shift).loglik) / 2e-5
        assert likelihood.at(at).gradient[k] == pytest.approx(slope, rel=1e-4, abs=1e-4)


def test_a_prior_weight_is_a_row_repeated() -> None:
    """Catches a weight that reaches the coefficients and not the thresholds; by its definition."""
    frame = load("wine").assign(weight=lambda rows: 1 + np.arange(len(rows)) % 3)
    formula = ORACLES["wine"]["formula"]
    weighted = fit(frame, formula, weights="weight")
    repeated = fit(frame.loc[frame.index.repeat(frame["weight"])], formula)
    assert weighted.loglik == pytest.approx(repeated.loglik, abs=1e-6)
    for one, other in zip(
        (*weighted.coefficients, *weighted.thresholds), (*repeated.coefficients, *repeated.thresholds), strict=True
    ):
        assert (one.estimate, one.se) == pytest.approx((other.estimate, other.se), abs=1e-4)


def test_a_level_that_never_occurs_changes_nothing_and_is_named() -> None:
    """Catches a threshold without data, and a silence on it: the likelihood is that of the levels moved together."""
    frame = load("wine")
    gap = frame.assign(rating=frame["rating"].replace({4: 7, 5: 8}))
    whole, less = (fit(one, ORACLES["wine"]["formula"]) for one in (frame, gap))
    assert less.loglik == whole.loglik
    assert [c.term for c in less.thresholds] == ["1|2", "2|3", "3|7", "7|8"]
    assert less.messages[0] == "Levels of rating that never occur have no threshold of their own: 4, 5, 6."
    names = pd.Categorical.from_codes(frame["rating"] - 1, ["a", "b", "c", "d", "e", "f"], ordered=True)
    named = fit(frame.assign(rating=names), ORACLES["wine"]["formula"])
    assert (named.loglik, named.thresholds[0].term) == (whole.loglik, "a|b")
    assert named.messages[0].endswith("of their own: f.")


def test_columns_that_repeat_others_are_left_out() -> None:
    """Catches a singular matrix, a constant taken for an effect, and contrasts that are refused though determined: of
    each column that the thresholds or others determine, lme4's rule leaves out the last."""
    frame = load("wine").assign(again=lambda rows: (rows["contact"] == "yes") * 2, one=1)
    whole, less = (fit(frame, f"rating ~ temp + contact{more} + (1|judge)") for more in ("", " + again + one"))
    assert set(less.dropped) == {"again", "one"}
    assert less.loglik == pytest.approx(whole.loglik, abs=1e-8)
    made = estimate_means(frame, whole, "temp").contrasts.iloc[0]
    warm = whole.coefficients[0]
    assert (made["estimate"], made["se"]) == pytest.approx((-warm.estimate, warm.se))
    assert made["odds_ratio"] == pytest.approx(np.exp(-warm.estimate))


@pytest.mark.parametrize(
    ("change", "formula", "settings", "said"),
    [
        (
            {"rating": 3},
            "rating ~ temp + (1|judge)",
            {},
            "has one level only, 3: an ordinal model compares at least two",
        ),
        ({"rating": 2.5}, "rating ~ temp + (1|judge)", {}, "whole numbers as the levels .*row 1 has 2.5: number the"),
        ({}, "temp ~ contact + (1|judge)", {}, "'temp' has words, such as 'cold', whose order an ordinal model cannot"),
        ({}, "rating ~ 0 + temp + (1|judge)", {}, "has no intercept, whose place the thresholds .* leave out '0 \\+'"),
        ({}, "rating ~ temp + (1|judge)", {"link": "probit"}, "has the logit link and is fitted by maximum likelihood"),
        ({}, "rating ~ temp + (1|judge)", {"agq": 5}, "leave out any other link, quadrature points"),
        ({}, "cbind(rating, judge) ~ temp", {}, "is no column of the data: an ordinal model needs the levels in one"),
        ({"rating": range(72)}, "rating ~ temp + (1|judge)", {}, "has 72 levels, too many .*at most 50.: join"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(change: dict, formula: str, settings: dict, said: str) -> None:
    """Catches a traceback, or a model of something else than was asked."""
    with pytest.raises(ForetellError, match=said):
        fit(load("wine").assign(**change), formula, **settings)


def test_an_unknown_family_is_refused_with_those_there_are() -> None:
    """Catches a message on random terms where the family is misspelt."""
    with pytest.raises(ForetellError, match="There is no family 'ordinl'; choose binomial, ordinal, poisson"):
        mixed.fit(load("wine"), "rating ~ temp + (temp||judge)", family="ordinl")


def test_an_infinite_estimate_is_refused_by_name() -> None:
    """Catches a finite number that the search happened to stop at: all warm wines have the highest rating."""
    frame = load("wine")
    frame.loc[frame["temp"] == "warm", "rating"] = 5
    with pytest.raises(ForetellError, match=r"no finite estimate of tempwarm, 4\|5, because all responses of"):
        fit(frame, "rating ~ temp + contact + (1|judge)")


def test_known_effects_are_recovered() -> None:
    """Catches a bias or intervals that are too narrow: 25 simulated studies with an effect of .6, seeded. The mean is
    within 3 of its standard errors; at 95% coverage, fewer than 20 hold the effect once in 800 such tests."""
    rng = np.random.default_rng(11)
    made = []
    for _ in range(25):
        frame = simulate(rng, 40, 10, 0.6)
        model = fit(frame, "level ~ shown + (1|participant) + (1|item)")
        (row,) = intervals.wald(model).itertuples()
        made.append((row.estimate, row.low < 0.6 < row.high, model.random[0].sd))
    table = np.array(made, dtype=np.float64)
    assert abs(table[:, 0].mean() - 0.6) < 3 * table[:, 0].std() / np.sqrt(25)
    assert table[:, 1].sum() >= 20
    assert table[:, 2].mean() == pytest.approx(0.8, abs=0.08)


def test_shares_of_levels_are_those_of_the_data() -> None:
    """Catches thresholds that are shifted: with them and no predictor, the model's shares of levels are the data's."""
    frame = load("wine")
    model = fit(frame, "rating ~ 1")
    below = expit([c.estimate for c in model.thresholds])
    np.testing.assert_allclose(below, [(frame["rating"] <= k).mean() for k in (1, 2, 3, 4)], atol=1e-6)
    assert (model.coefficients, model.random) == ((), ())


def test_proportional_odds_are_compared_as_by_clmm2() -> None:
    """Catches thresholds of another combination, a search that stops at the smaller model, and ratios upside down.
    Oracle: the model with nominal effects of R's clmm2."""
    frame, theirs = load("wine_contact"), ORACLES["wine_contact"]["nominal"]
    model = fit(frame, ORACLES["wine_contact"]["formula"])
    made = proportional.check(frame, model)
    assert (made.chisq, made.df) == pytest.approx((2 * (theirs["loglik"] - model.loglik), 3), abs=1e-4)
    shifts = np.array(theirs["thresholds"])[1]
    np.testing.assert_allclose(made.list_odds_ratios(np.ones(1), np.zeros(1)), np.exp(-shifts), rtol=1e-3)
    assert proportional.describe(made) == "No evidence against proportional odds (χ²(3) = 0.48, p = .923)."


def test_odds_that_are_not_proportional_are_detected_and_others_said_to_be_unchecked() -> None:
    """Catches a test without power, and a comparison without a meaning. The effect moves participants to both ends of
    the scale, by construction: the odds ratios are below 1 at one end and above at the other."""
    rng = np.random.default_rng(2)
    frame = simulate(rng, 40, 10, 0.0)
    spread = frame["shown"].to_numpy(bool) & (rng.random(len(frame)) < 0.5)
    frame.loc[spread, "level"] = np.where(frame.loc[spread, "level"] > 2, 4, 1)
    model = fit(frame, "level ~ shown + (1|participant)")
    made = proportional.check(frame, model)
    assert made.p < 0.001
    assert proportional.describe(made).startswith("Proportional odds do not hold (χ²(2) = ")
    at_each = made.list_odds_ratios(np.ones(1), np.zeros(1))
    assert at_each[0] < 1 < at_each[-1]
    continuous = frame.assign(x=rng.normal(size=len(frame)))
    for formula, reason in (
        ("level ~ x + (1|participant)", "the fixed effects are not factors with all their interactions"),
        ("level ~ shown", "the model has no random terms"),
    ):
        with pytest.raises(ForetellError, match=f"Proportional odds were not checked, because {reason}"):
            proportional.check(continuous, fit(continuous, formula))


def test_the_command_prints_odds_ratios_thresholds_and_random_effects(tmp_path: Path) -> None:
    """Catches a family that the command does not pass on, and odds ratios of a lower level; numbers of R's clmm."""
    path = tmp_path / "wine.csv"
    load("wine").to_csv(path, index=False)
    command = ["glmm", str(path), "--formula", ORACLES["wine"]["formula"], "--family", "ordinal"]
    printed = CliRunner().invoke(build_app(), command).output
    assert re.search(r"tempwarm +3\.0630 +0\.5954 +5\.1445 +< \.001 +21\.39\d +\[6\.66\d, 68\.7\d\d\]", printed)
    assert "threshold 1|2: -1.6237 (SE 0.6824)" in printed
    assert "SD judge (Intercept): 1.1311" in printed
    values = json.loads(CliRunner().invoke(build_app(), [*command, "--json", "-"]).stdout)
    assert values["odds_ratios"][0]["odds_ratio"] == pytest.approx(np.exp(3.0630), rel=1e-3)
    assert [one["term"] for one in values["thresholds"]] == ["1|2", "2|3", "3|4", "4|5"]
    assert "Proportional odds were not checked, because the fixed effects are not factors with all their" in printed
    printed = CliRunner().invoke(build_app(), [*command, "--effects", "temp", "--scale", "response"]).output
    assert "Average marginal effects on the mean level, where every random effect is 0" in printed
    (case,) = [one for one in json.loads(MEAN_LEVELS.read_text()) if (one["name"], one["asked"]) == ("wine", "~ temp")]
    assert f"{case['difference']:.4f}" in printed  # emmeans: the design is balanced


@pytest.mark.parametrize("case", json.loads(MEAN_LEVELS.read_text()))
def test_mean_levels_are_those_of_emmeans(case: dict[str, Any]) -> None:
    """Catches errors without the covariance of the thresholds. Oracle: emmeans of clmm (``oracles/mean_levels.R``)."""
    frame, asked = load(case["name"]), case["asked"].removeprefix("~ ")
    model = fit(frame, ORACLES[case["name"]]["formula"])
    first, *_, last = frame[asked].cat.categories
    made = estimate_means(frame, model, asked, contrasts=(f"{last} - {first}",), scale="response")
    np.testing.assert_allclose(made.means["estimate"], case["mean"], atol=2e-5)
    np.testing.assert_allclose(made.means["se"], case["se"], atol=2e-5)
    expected = [case["difference"], case["difference_se"]]
    np.testing.assert_allclose(made.contrasts[["estimate", "se"]].iloc[0].astype(float), expected, atol=2e-5)


def test_mean_levels_are_averaged_over_participants_and_stay_on_the_scale() -> None:
    """Catches the mean level of a judge in the middle, limits above the highest level, and bounds beyond the scale.

    Oracle: the definition, integrated by SciPy.
    """
    frame = load("wine")
    model = fit(frame, ORACLES["wine"]["formula"])
    own, cuts = model.random[0].sd, [c.estimate for c in model.thresholds]
    temp, contact = (c.estimate for c in model.coefficients)

    def pass_on(eta: float) -> float:
        return float(quad(lambda b: expit(eta + b) * norm.pdf(b, scale=own), -15, 15)[0])

    made = estimate_means(frame, model, "temp", scale="population", level=0.999999)
    expected = [
        1 + np.mean([sum(pass_on(warm + yes - cut) for cut in cuts) for yes in (0, contact)]) for warm in (0, temp)
    ]
    np.testing.assert_allclose(made.means["estimate"], expected, atol=1e-6)
    assert (made.means["low"] > 1).all()
    assert (made.means["high"] < 5).all()
    assert made.notes[0] == "Population scale: mean levels averaged over the random effects."
    how: dict[str, Any] = {"contrasts": ("pairwise",), "adjust": "holm"}
    said = compute_equivalence(frame, model, made, (-2.0, 2.0), **how)
    assert (said.unit, list(said.table["conclusion"])) == (" levels", ["different and equivalent"])
    with pytest.raises(ForetellError, match=r"Equivalence bounds must be smaller than 4 levels\."):
        compute_equivalence(frame, model, made, (-4.0, 4.0), **how)
