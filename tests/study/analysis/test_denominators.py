"""From how many independent levels the error of an effect comes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, t

from study.analysis.models import denominators, laplace, mixed
from study.analysis.models.laplace import Block
from study.analysis.models.records import VariancePart
from study.analysis.planned import contrasts, nested
from study.analysis.power.outcomes import run_tests
from study.analysis.report import model_table
from study.plan.preregistration import NESTED, RANDOM
from tests.study.analysis.simulated import TYPES, slopes, study, study_with_images


def test_each_term_has_the_degrees_of_freedom_of_containment() -> None:
    """Catches levels that are counted as if the fixed effects used none of them. By hand: 80 participants in 4 groups,
    8 categories and 24 images of 3 types; the fixed effects use 4, 1 and 3 of what these terms span."""
    frame = study_with_images(3)
    model = mixed.fit(frame, f"correct ~ trial_type * saliency * examples + {RANDOM}")
    likelihood, parameters = laplace.of(frame, model)
    counted = {
        (block.group, block.terms[0]): denominators.count_df(likelihood.design, term)
        for block, term in zip(model.blocks, likelihood.blocks, strict=True)
    }
    assert counted["participant", "(Intercept)"] == 80 - 4
    assert counted["participant", "trial_typestd_correct"] == 80 - 4
    assert counted["category", "saliency"] == 8 - 1
    assert counted["item", "saliency"] == 24 - 3
    assert parameters.shape == (likelihood.parameters,)


def test_the_parts_add_up_to_the_covariance_of_the_estimates() -> None:
    """Catches a part that is lost or counted twice; the covariance is that of the observed information."""
    frame = study_with_images(3)
    model = mixed.fit(frame, f"correct ~ trial_type * saliency * examples + {RANDOM}")
    total = np.sum([part.covariance for part in model.parts], axis=0)
    np.testing.assert_allclose(np.sqrt(np.diag(total)), [c.se for c in model.coefficients], rtol=0.05)
    assert mixed.fit(frame, "correct ~ saliency + (1|participant)").parts == ()


def test_sums_of_parts_by_their_closed_forms() -> None:
    """Satterthwaite: two equal parts of nu each have 2 nu. Fai & Cornelius: two effects of nu each have nu together."""
    one = VariancePart(np.eye(2), 9.0)
    first = np.array([[1.0, 0.0]])
    assert denominators.compute_df([one], first)[0] == pytest.approx(9)
    assert denominators.compute_df([one, one], first)[0] == pytest.approx(18)
    assert denominators.pool_df([one], np.eye(2)) == pytest.approx(9)
    assert denominators.pool_df([], np.eye(2)) == np.inf


def test_the_scale_of_an_f_test_by_its_closed_forms() -> None:
    """Catches a correction for effects that the levels do not span, and one of the random part without its sampling
    error. m levels that span an effect and have nu degrees of freedom: m / nu, whatever the shares; one effect of two:
    the mean of m / nu and 1."""
    between = np.array([[1.0], [0.0]])
    parts = [VariancePart(3 * np.eye(2), 500.0), VariancePart(np.diag([2.0, 0.0]), 9.0, 10, between)]
    assert denominators.compute_scale(parts, np.eye(2)[:1]) == pytest.approx(10 / 9)
    assert denominators.compute_scale(parts, np.eye(2)[1:]) == pytest.approx(1)
    assert denominators.compute_scale(parts, np.eye(2)) == pytest.approx((10 / 9 + 1) / 2)
    assert denominators.compute_scale([], np.eye(2)) == 1
    assert denominators.compute_scale(parts, np.zeros((0, 2))) == 1


def test_the_scale_is_the_ratio_of_the_errors_by_reml_and_by_maximum_likelihood() -> None:
    """Catches levels counted wrongly, or directions of the design that are not those of the term.

    Oracle: the squared standard errors of glmm's REML fit over those of its maximum-likelihood fit, of 12 participants
    in 4 groups with 10 responses each: 12 / 8 between participants.
    """
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"id": np.repeat(np.arange(12), 10)})
    frame["a"], frame["b"] = frame["id"] % 2, frame["id"] // 2 % 2
    frame["time"] = rng.normal(0, 1, 12)[frame["id"]] + rng.normal(0, 1, len(frame))
    frame["id"] = "p" + frame["id"].astype(str)
    formula = "time ~ a * b + (1|id)"
    ml, reml = (mixed.fit(frame, formula, family="gaussian", reml=reml) for reml in (False, True))
    design, z = ml.design(frame), pd.get_dummies(frame["id"]).to_numpy(np.float64)
    random = ml.random[0].variance * z @ z.T
    weights = np.linalg.inv(random + ml.dispersion * np.eye(len(frame)))
    linear = np.linalg.inv(design.T @ weights @ design) @ design.T @ weights
    levels = Block(pd.factorize(frame["id"])[0], np.ones((len(frame), 1)), list(dict.fromkeys(frame["id"])))
    sampling = VariancePart(ml.dispersion * linear @ linear.T, 108.0)
    parts = [sampling, denominators.make_part(linear @ random @ linear.T, design, levels)]
    np.testing.assert_allclose(parts[0].covariance + parts[1].covariance, ml.covariance, rtol=1e-6)
    each = [denominators.compute_scale(parts, row[None, :]) for row in np.eye(4)]
    np.testing.assert_allclose(each, np.diag(reml.covariance) / np.diag(ml.covariance), rtol=1e-3)
    assert each == pytest.approx([12 / 8] * 4)


def test_a_default_that_is_reduced_to_intercepts_keeps_its_degrees_of_freedom() -> None:
    """Catches z and chi-square where slopes were planned and none is left: participants still differ.

    12 participants in 4 groups have 8 degrees of freedom; the responses have others.
    """
    frame = study(people=12, categories=6, per_type=4, seed=1, sd=1.5)
    frame = frame.assign(trial_type=pd.Categorical(frame["trial_type"], categories=list(TYPES)))
    fixed = {name: f"{terms} + (examples||category) + (1|participant)" for name, terms in NESTED.items()}
    analysis = nested.analyze(frame, fixed=fixed)
    assert "examples" not in analysis.random
    first = analysis.tests[0]
    assert first.df2 is not None
    assert first.p is not None
    assert 8 <= first.df2 < 40
    assert first.p > chi2.sf(first.chisq, 2)
    assert contrasts.table(analysis.largest)["df"].notna().all()
    power, _, _ = run_tests(frame, fixed, "corrected")
    assert [one.p for one in power] == pytest.approx([one.p for one in analysis.tests], rel=1e-3)
    table = model_table.table(analysis.largest)
    assert list(table)[5:8] == ["t", "df", "p"]
    np.testing.assert_allclose(table["p"], 2 * t(table["df"]).sf(abs(table["estimate"] / table["se"])))
    np.testing.assert_allclose(table["high"] - table["estimate"], t(table["df"]).ppf(0.975) * table["se"])
    assert " & $t$ & df & $p$ " in model_table.latex(analysis.largest)
    paper = nested.analyze(frame, fixed=NESTED, tests="chi_square")
    assert contrasts.table(paper.largest)["df"].isna().all()
    assert list(model_table.table(paper.largest))[5:7] == ["z", "p"]


@pytest.mark.parametrize(
    ("formula", "reml", "df"),
    [
        ("time ~ x + (x||id)", True, (29.2453420, 28.0540202)),
        ("time ~ x + (x||id)", False, (30.2623126, 28.9832045)),
        ("time ~ x + (0 + x|id)", True, (875.6012517, 27.7071147)),
        ("time ~ x + (x|id) + (1|item)", True, (29.2707291, 28.1291529)),
    ],
)
def test_degrees_of_freedom_are_those_of_lmertest(formula: str, reml: bool, df: tuple[float, float]) -> None:
    """Catches z where few participants carry the error, and another fit's degrees of freedom.

    Oracle: summary() of lmerTest 3.1.3 for the same rows.
    """
    model = mixed.fit(slopes(7), formula, family="gaussian", reml=reml)
    assert [c.df for c in model.coefficients] == pytest.approx(df, rel=2e-5)
    p = [2 * t(c.df).sf(abs(c.z)) for c in model.coefficients]
    assert [c.p for c in model.coefficients] == pytest.approx(p)
