"""Fresh random designs fitted here and in lme4, where it is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from study.analysis.models import intervals, mixed
from study.analysis.models.mixed import MixedModel
from tests.study.analysis import lme4, rscript
from tests.study.analysis.simulated import TYPES, slopes, study

pytestmark = lme4.needed


def agrees(model: MixedModel, other: dict, atol: float = 1e-4) -> None:
    """Every number of the model, standard errors as far as lme4 knows them."""
    rscript.agrees(model, other, atol, lme4.SE_RTOL)


@pytest.mark.parametrize("seed", [101, 202])
@pytest.mark.parametrize(
    "formula",
    [
        "correct ~ trial_type * saliency + (1|participant) + (1|category)",
        "correct ~ trial_type + saliency * examples + (1|category)",
    ],
)
def test_crossed_intercepts(tmp_path: Path, seed: int, formula: str) -> None:
    frame = study(40, 10, 8, seed=seed, sd=0.8)
    frame = frame.assign(trial_type=pd.Categorical(frame["trial_type"], categories=list(TYPES)))
    agrees(mixed.fit(frame, formula), lme4.fit(frame, formula, tmp_path))


@pytest.mark.parametrize("seed", [11, 12])
def test_random_slopes(tmp_path: Path, seed: int) -> None:
    frame, formula = slopes(seed), "y ~ x + (x|id) + (1|item)"
    agrees(mixed.fit(frame, formula), lme4.fit(frame, formula, tmp_path))


def test_nested_groups_and_quadrature(tmp_path: Path) -> None:
    frame = slopes(5)
    agrees(mixed.fit(frame, "y ~ x + (1|id/item)"), lme4.fit(frame, "y ~ x + (1|id/item)", tmp_path), atol=1e-3)
    model = mixed.fit(frame, "y ~ x + (1|id)", agq=9)
    other = lme4.fit(frame, "y ~ x + (1|id)", tmp_path, nodes=9)
    assert model.nodes == 9
    np.testing.assert_allclose([c.estimate for c in model.coefficients], other["estimate"], atol=1e-4, rtol=0)
    assert model.random[0].sd == pytest.approx(other["sd"][0], abs=1e-3)


@pytest.mark.parametrize("reml", [True, False])
def test_linear_models(tmp_path: Path, reml: bool) -> None:
    frame, formula = slopes(7), "time ~ x + (x|id) + (1|item)"
    agrees(mixed.fit(frame, formula, family="gaussian", reml=reml), lme4.fit(frame, formula, tmp_path, reml=reml))


@pytest.mark.parametrize("reml", [True, False])
@pytest.mark.parametrize(
    "formula", ["time ~ x + (x||id)", "time ~ x + (0 + x|id)", "time ~ x + (x||id) + (1|item)", "time ~ 1 + (x|id)"]
)
def test_linear_models_with_uncorrelated_slopes(tmp_path: Path, formula: str, reml: bool) -> None:
    """They were refused; log response times need them as much as accuracy does."""
    frame = slopes(7)
    model = mixed.fit(frame, formula, family="gaussian", reml=reml)
    other = lme4.fit(frame, formula, tmp_path, reml=reml)
    agrees(model, {**other, "group": [group.removesuffix(".1") for group in other["group"]]})
    assert model.converged


def test_a_linear_slope_without_variance_is_a_boundary() -> None:
    """A slope that is the same for everybody is estimated as exactly 0, not as 1e-5, and called singular."""
    frame = slopes(7)
    share = frame.groupby("id").cumcount() % 2  # the same residuals for each id: no slope is left between them
    alike = frame.assign(x=share - 0.5, time=7 + 0.2 * share + 0.4 * (frame.groupby("id").cumcount() // 2 % 2))
    model = mixed.fit(alike, "time ~ x + (x||id)", family="gaussian")
    assert next(r.sd for r in model.random if r.term == "x") == 0
    assert any("Boundary (singular) fit" in message for message in model.messages)


def test_profiles_and_modes(tmp_path: Path) -> None:
    """lme4's own profile intervals, and its conditional modes first: confint() leaves others behind in the model."""
    frame, formula = study(40, 10, 8, seed=3, sd=0.8), "correct ~ saliency + (1|participant) + (1|category)"
    more = """
    modes <- ranef(model, condVar = TRUE)$category
    out$levels <- text(rownames(modes)); out$mode <- number(modes[, 1])
    out$spread <- number(sqrt(attr(modes, "postVar")[1, 1, ]))
    ci <- suppressMessages(confint(model, method = "profile", devtol = 1e-6, quiet = TRUE))
    out$low <- number(ci[, 1]); out$high <- number(ci[, 2]); out$which <- text(rownames(ci))
    """
    other = lme4.fit(frame, formula, tmp_path, more=more)
    model = mixed.fit(frame, formula)
    theirs = {w: (a, b) for w, a, b in zip(other["which"], other["low"], other["high"], strict=True)}
    for row in intervals.profile(frame, model).itertuples():
        assert (row.low, row.high) == pytest.approx(theirs[row.term], abs=2e-3)
    sds = intervals.variance_components(frame, model)
    for row, name in zip(sds.itertuples(), (".sig01", ".sig02"), strict=True):  # the larger grouping first
        assert (row.low, row.high) == pytest.approx(theirs[name], abs=3e-3)
    modes = intervals.conditional_modes(frame, model).set_index(["group", "level"]).loc["category"]
    np.testing.assert_allclose(modes.loc[other["levels"], "mode"], other["mode"], atol=1e-3)
    np.testing.assert_allclose(modes.loc[other["levels"], "sd"], other["spread"], atol=1e-3)
