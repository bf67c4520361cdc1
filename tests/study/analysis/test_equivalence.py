"""Equivalence tests and Bayes factors: against R's emmeans, closed forms and numerical integrals."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm, t
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

import foretell
from core.errors import ForetellError
from dashboard.cli.main import build_app
from dashboard.results.jobs import AnalysisResult
from study.analysis.means import bayes_factors
from study.analysis.means.equivalence import compute_equivalence, compute_p, conclude, read_bounds
from study.analysis.means.means import estimate_means
from study.analysis.planned import equivalence, nested, placebos
from study.analysis.planned.contrasts import Contrast
from study.analysis.power import simulation as power
from study.analysis.power.truths import TABLE_1, AdditiveTruth
from study.analysis.report import results
from study.analysis.responses import reading as responses
from study.bundle import TRIAL_TYPES
from study.plan.preregistration import AnalysisPlan, complete
from tests.study.analysis.simulated import study
from tests.study.analysis.test_means import load

ORACLES = json.loads((Path(__file__).parent / "oracles" / "equivalence.json").read_text())
CONTRASTS = pd.DataFrame(
    {
        "contrast": ["saliency - none, std_correct", "examples - none", "both - none", "both - saliency"],
        "estimate": [0.02, 0.4, 0.1, np.nan],
        "se": [0.1, 0.1, 0.4, np.nan],
        "df": [9.5, np.nan, 30.0, np.nan],
        "p_holm": [0.9, 1e-4, 0.8, np.nan],
        "points": [0.5, 6.0, 1.0, np.nan],
        "points_low": [0.5 - 2 * t(9.5).ppf(0.975), 6 - norm.ppf(0.975), 1 - 4 * t(30).ppf(0.975), np.nan],
        "points_high": [0.5 + 2 * t(9.5).ppf(0.975), 6 + norm.ppf(0.975), 1 + 4 * t(30).ppf(0.975), np.nan],
    }
)
"""As of `study.analysis.planned.contrasts.table`: standard errors of 2, 1 and 4 points; one is not determined."""


@pytest.mark.parametrize("theirs", ORACLES, ids=lambda case: f"{case['name']} {case['spec']}")
def test_p_is_that_of_emmeans(theirs: dict) -> None:
    """Catches the wrong side, scale, unit, degrees of freedom or correction. Oracle: emmeans' test(side="equivalence"),
    stored by ``oracles/equivalence.R``."""
    frame, model = load(theirs["name"])
    points = model.family == "binomial"
    made = estimate_means(frame, model, theirs["spec"])
    options = {"contrasts": ["pairwise"], "adjust": "holm"}
    bound = theirs["delta"] * (100 if points else 1)
    tests = compute_equivalence(frame, model, made, (-bound, bound), **options)
    np.testing.assert_allclose(tests.table["p_equivalence"], theirs["p"], atol=1e-6)
    np.testing.assert_allclose(tests.table["p_equivalence_holm"], theirs["holm"], atol=1e-6)
    np.testing.assert_array_equal(tests.table["p_difference"], made.contrasts["p_holm"])
    assert (tests.unit == " percentage points") == points


def test_a_test_of_equivalence_is_its_interval() -> None:
    """Catches bounds that are mixed up or taken as symmetric, and an interval of another coverage than 1 - 2 alpha:
    uncorrected, p is below alpha exactly where the interval lies between the bounds (Schuirmann, 1987)."""
    frame, model = load("two_factors")
    made = estimate_means(frame, model, "saliency * examples", adjust="none")
    seen = set()
    for bounds in [(-15.0, 40.0), (-40.0, 15.0), (-30.0, 30.0), (-5.0, 5.0)]:
        for alpha in (0.01, 0.05, 0.2):
            options = {"contrasts": ["pairwise"], "adjust": "none", "alpha": alpha}
            table = compute_equivalence(frame, model, made, bounds, **options).table
            inside = (table["points_low"] > bounds[0]) & (table["points_high"] < bounds[1])
            assert list(table["p_equivalence"] < alpha) == list(inside)
            seen |= set(inside)
    assert seen == {True, False}
    p = compute_p(np.array([3.0]), np.array([2.0]), np.array([7.0]), (-10.0, 4.0))
    assert p[0] == pytest.approx(t(7).cdf((3 - 4) / 2))  # the nearer bound decides


def test_planned_tests_have_the_standard_errors_and_degrees_of_freedom_of_their_contrasts() -> None:
    """Catches normal intervals where contrasts have t, and Holm's correction that counts what has no test. Expected
    values from the standard errors and degrees of freedom of `CONTRASTS`."""
    table = equivalence.tabulate(CONTRASTS, (-5.0, 5.0), 0.05)
    nearest = [t(9.5).cdf(-4.5 / 2), norm.cdf(1 / 1), t(30).cdf(-4 / 4)]
    np.testing.assert_allclose(table["p_equivalence"][:3], nearest, rtol=1e-12)
    first, _, third = nearest
    np.testing.assert_allclose(table["p_equivalence_holm"][:3], [3 * first, nearest[1], 2 * third], rtol=1e-12)
    half = [2 * t(9.5).ppf(0.95), norm.ppf(0.95), 4 * t(30).ppf(0.95)]
    np.testing.assert_allclose(table["points_high"][:3] - table["points"][:3], half, rtol=1e-12)
    assert list(table["conclusion"]) == ["undecided", "different", "undecided", "cannot be tested"]
    assert list(equivalence.tabulate(CONTRASTS[:1], (-5.0, 5.0), 0.05)["conclusion"]) == ["equivalent"]
    assert conclude(np.array([0.01]), np.array([0.01]), 0.05) == ["different and equivalent"]


def test_each_conclusion_is_a_sentence() -> None:
    """Catches a sentence that contradicts its numbers: an interval within the bounds that "reaches beyond" them."""
    said = equivalence.describe(equivalence.tabulate(CONTRASTS, (-5.0, 5.0), 0.05), (-5.0, 5.0), 0.05)
    assert said == [
        "Saliency maps vs no explanation, AI right: not shown to be equivalent within 5 percentage points: the 90% CI "
        "−3.1 to 4.1 lies within, but not after correction for the number of contrasts (Holm-corrected p = .074).",
        "Examples vs no explanation, all trials: different, and not shown to be equivalent within 5 percentage points: "
        "the 90% CI 4.4 to 7.6 reaches beyond.",
        "Both explanations vs no explanation, all trials: not shown to be equivalent within 5 percentage points: the "
        "90% CI −5.8 to 7.8 reaches beyond.",
        "Both explanations vs saliency maps, all trials: equivalence cannot be tested with these data.",
    ]
    wide = equivalence.describe(equivalence.tabulate(CONTRASTS, (-20.0, 10.0), 0.05), (-20.0, 10.0), 0.05)
    assert wide[1] == (
        "Examples vs no explanation, all trials: different and equivalent within −20 to 10 percentage points (90% CI "
        "4.4 to 7.6; Holm-corrected p < .001)."
    )


@pytest.mark.parametrize(("estimate", "se", "prior_sd"), [(0.3, 0.2, 0.5), (-1.1, 0.3, 0.25), (0.0, 0.05, 2.0)])
def test_bayes_factors_are_ratios_of_marginal_likelihoods(estimate: float, se: float, prior_sd: float) -> None:
    """Catches BF10 for BF01 and a variance for a standard deviation. Oracle: the likelihood integrated numerically over
    the prior."""

    def joint(difference: float) -> float:
        return float(norm.pdf(estimate, difference, se) * norm.pdf(difference, 0, prior_sd))

    marginal = quad(joint, -10, 10, points=[0, estimate], limit=200)[0]
    table = bayes_factors.tabulate(pd.DataFrame({"contrast": ["a"], "estimate": [estimate], "se": [se]}), prior_sd)
    assert table[f"bf01_{prior_sd:g}"][0] == pytest.approx(norm.pdf(estimate, 0, se) / marginal, rel=1e-7)
    assert list(table)[3:] == [f"bf01_{multiple * prior_sd:g}" for multiple in (0.5, 1, 2)]


def test_a_plan_states_bounds_in_every_form_and_hashes_them() -> None:
    """Catches bounds that are no part of the hash, or that change the hash of plans without them."""
    plain = AnalysisPlan()
    assert {"equivalence", "prior_sd"}.isdisjoint(plain.model_dump(mode="json"))
    plans = [AnalysisPlan.model_validate({"equivalence": given}) for given in (5, "5", [-5, 5], "-5; 5", "−5 5")]
    assert {plan.equivalence for plan in plans} == {(-5.0, 5.0)}
    assert len({plan.sha256 for plan in plans}) == 1
    others = {plain.sha256, AnalysisPlan(equivalence="-5, 10").sha256, AnalysisPlan(prior_sd=0.5).sha256}
    assert len(others | {plans[0].sha256}) == 4
    frozen = complete(plans[0].model_dump(mode="json"))
    assert AnalysisPlan.model_validate(frozen).sha256 == plans[0].sha256


@pytest.mark.parametrize("given", ["2,5", "x", "", "0", "nan", "1 2 3"])
def test_bounds_that_are_none_are_refused_with_a_remedy(given: str) -> None:
    """Catches bounds on one side of 0, such as a decimal comma makes, and a sentence without what to write."""
    with pytest.raises(ForetellError, match=r"^The equivalence bounds .* write 5 for −5 to 5, or -5,10"):
        read_bounds(given)
    with pytest.raises(ValueError, match="smaller than 100 percentage points"):
        AnalysisPlan(equivalence=100)


def test_the_report_shows_planned_tests_and_bayes_factors(tmp_path: Path) -> None:
    """Catches tables that reach a file only, the wrong coverage in a heading, and a label as exploratory."""
    plan = AnalysisPlan(
        models={"null": "trial_type", "explanation": "trial_type + saliency"},
        contrasts=({"more": "saliency"},),
        equivalence="-30, 25",
        prior_sd=0.5,
    )
    results.write(responses.prepare(study(24, 8, 8, seed=11)), tmp_path, plan=plan)
    page, text = ((tmp_path / name).read_text() for name in ("report.html", "report.md"))
    heading = "Equivalence within −30 to 25 percentage points"
    assert f'{heading} <span class="label">planned</span>' in page
    assert f"## {heading} (planned)" in text
    contrasts, table = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("contrasts", "equivalence"))
    pd.testing.assert_frame_equal(table, equivalence.tabulate(contrasts, (-30.0, 25.0), 0.05), atol=1e-12)
    sentence = equivalence.describe(table, (-30.0, 25.0), 0.05)[0]
    assert sentence.split(": ")[1][:25] in page
    assert f"- {sentence}" in text
    assert "90% CI from" in page
    factors = pd.read_csv(tmp_path / "bayes_factors.csv")
    assert list(factors) == ["contrast", "estimate", "se", "bf01_0.25", "bf01_0.5", "bf01_1"]
    assert "BF₀₁, prior SD 0.25" in page


def test_power_of_equivalence_is_that_of_the_analysis() -> None:
    """Catches an uncorrected p, other bounds or another contrast in simulated studies than in the analysis, and a
    row that counts as a test of models."""
    world = AdditiveTruth(TABLE_1, categories=6, per_type=1)
    asked = [Contrast("saliency", "none", (kind,)) for kind in TRIAL_TYPES[:2]]
    models = {"null": "trial_type", "interaction": "trial_type * saliency * examples"}
    table = power.curve(
        world,
        [12],
        studies=2,
        effects=[0.0],
        models=models,
        tests="chi_square",
        contrasts=asked,
        equivalence=(-60.0, 60.0),
        workers=1,
    )
    rows = table[table["test"].str.startswith("equivalence: ")]
    assert list(rows["test"]) == [f"equivalence: {one.name}" for one in asked]
    assert list(rows["power"]) == [1.0, 1.0]  # no difference, and bounds that are hard to miss
    assert power.is_contrast(table).tolist() == [False] + [True] * 4
    assert power.name_test(rows["test"].iloc[0]).endswith("AI wrong (adversarial): equivalence")


def test_command_and_notebook_have_the_same_tests(tmp_path: Path) -> None:
    """Catches a command that drops its options, and bounds that are accepted without means to compare."""
    frame = study(16, 6, 4, seed=3)
    frame.to_csv(tmp_path / "r.csv", index=False)
    formula = "correct ~ trial_type + saliency + (1 | participant)"
    made = foretell.glmm(frame, formula).means("trial_type", adjust="mvt")
    tests, factors = made.equivalence("-20,30"), made.bayes_factors(0.5)
    command = ["glmm", str(tmp_path / "r.csv"), "--formula", formula]
    options = ["--means", "trial_type", "--adjust", "mvt", "--equivalence", "-20,30", "--prior-sd", "0.5"]
    said = CliRunner().invoke(build_app(), [*command, *options])
    assert said.exit_code == 0, said.output
    assert str(tests) in said.output
    assert str(factors) in said.output
    told = json.loads(CliRunner().invoke(build_app(), [*command, *options, "--json", "-"]).stdout)["means"][0]
    assert told["equivalence"]["bounds"] == [-20, 30]
    assert [row["p_equivalence"] for row in told["equivalence"]["contrasts"]] == list(tests.table["p_equivalence"])
    assert told["bayes_factors"][0]["bf01_0.5"] == factors.table["bf01_0.5"][0]
    refused = CliRunner().invoke(build_app(), [*command, "--equivalence", "5"])
    assert str(refused.exception).startswith("--equivalence needs --means")


@cache
def analyse_a_few() -> AnalysisResult:
    """The result of a study without a plan, with one contrast."""
    data = responses.prepare(study(16, 6, 4, seed=3))
    analysis = nested.analyze(data, fixed={"a": "trial_type", "b": "trial_type * saliency"}, tests="chi_square")
    wanted = placebos.list_all_default_contrasts(data)[:1]
    table = placebos.together(data, analysis.largest, wanted).table
    return AnalysisResult("key", data, table, None, analysis, table)


def _draw() -> None:
    from dashboard.results import evidence
    from tests.study.analysis.test_equivalence import analyse_a_few

    evidence.show(analyse_a_few())


def test_results_test_equivalence_on_request() -> None:
    """Catches fields that show nothing, and bad bounds that stop the page below them."""
    app = AppTest.from_function(_draw).run()
    assert not app.exception
    assert not app.dataframe
    app.text_input(key="equivalence").set_value("30")
    app.number_input(key="prior_sd").set_value(0.5).run()
    assert not app.exception
    assert "p_equivalence_holm" in app.dataframe[0].value
    assert "bf01_0.25" in app.dataframe[1].value
    assert any("within 30 percentage points" in text.value for text in app.markdown)
    app.text_input(key="equivalence").set_value("2,5").run()
    assert "do not have 0 between them" in app.error[0].value
    assert "bf01_0.25" in app.dataframe[0].value
