"""Linear mixed models with prior weights against lme4, lmerTest and emmeans (``oracles/gaussian_weights.R``)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.means.means import estimate_means
from study.analysis.models import mixed
from study.analysis.models.records import MixedModel

CASES = json.loads((Path(__file__).parent / "oracles" / "gaussian_weights.json").read_text())
UNCORRELATED = "Reaction ~ half + Days + (Days||id)"


def fit(case: dict[str, Any]) -> tuple[pd.DataFrame, MixedModel]:
    """The rows of a case, and its model."""
    frame = pd.DataFrame(case["data"])
    return frame, mixed.fit(frame, case["formula"], family="gaussian", reml=case["reml"], weights="w")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_weighted_fit_is_that_of_lmer(case: dict[str, Any]) -> None:
    """Catches rows, or columns of random effects, that are not scaled, a likelihood without the weights' share, and
    degrees of freedom of the rows without weights."""
    _, model = fit(case)
    assert model.loglik == pytest.approx(case["loglik"], abs=1e-4)
    np.testing.assert_allclose([c.estimate for c in model.coefficients], case["estimate"], rtol=1e-4)
    np.testing.assert_allclose([c.se for c in model.coefficients], case["se"], rtol=1e-3)
    np.testing.assert_allclose([c.df for c in model.coefficients], case["df"], rtol=1e-3)
    np.testing.assert_allclose([*(r.sd for r in model.random), math.sqrt(model.dispersion)], case["sd"], rtol=1e-3)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_means_of_a_weighted_fit_have_the_degrees_of_freedom_of_emmeans(case: dict[str, Any]) -> None:
    """Catches the fewest degrees of freedom of any coefficient, and those of a fit without weights."""
    made = estimate_means(*fit(case), case["spec"]).means
    for ours, theirs in (("estimate", "emmean"), ("se", "SE"), ("df", "df")):
        np.testing.assert_allclose(made[ours], case["means"][theirs], rtol=1e-3, err_msg=ours)


@pytest.mark.parametrize(
    ("weight", "reason"), [(-1.0, "must be positive"), (0.0, "must be positive"), (math.inf, "must be finite")]
)
def test_weights_that_no_variance_has_are_refused(weight: float, reason: str) -> None:
    """Catches the square root or logarithm of such a weight in the search of our own."""
    frame = pd.DataFrame(CASES[0]["data"]).astype({"w": float})
    frame.loc[3, "w"] = weight
    with pytest.raises(ForetellError, match=reason):
        mixed.fit(frame, UNCORRELATED, family="gaussian", weights="w")


def test_missing_weights_are_refused() -> None:
    """Catches a row that a fit leaves out in silence."""
    frame = pd.DataFrame(CASES[0]["data"])
    with pytest.raises(ForetellError, match="Column 'w' has 1 missing values"):
        mixed.fit(frame.assign(w=frame["w"].where(frame.index != 3)), UNCORRELATED, family="gaussian", weights="w")
