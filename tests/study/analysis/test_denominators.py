"""From how many independent levels the error of an effect comes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from study.analysis.models import denominators, laplace, mixed
from study.analysis.models.records import VariancePart
from study.plan.preregistration import RANDOM
from tests.study.analysis.simulated import slopes, study_with_images


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
