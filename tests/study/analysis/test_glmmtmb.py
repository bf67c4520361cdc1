"""Fresh random designs fitted here and in glmmTMB, where it is installed: its standard errors are exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from study.analysis.models import mixed
from study.analysis.responses import reading as responses
from tests.study.analysis import glmmtmb, rscript
from tests.study.analysis.simulated import TYPES, slopes, study, study_with_images

SLOPES = ("saliency", "examples")

pytestmark = glmmtmb.needed


@pytest.mark.parametrize("seed", [303, 404])
@pytest.mark.parametrize(
    "formula",
    [
        "correct ~ trial_type * saliency * examples + (1|participant) + (1|category)",
        "correct ~ trial_type + saliency * examples + (1|category)",
    ],
)
def test_crossed_intercepts(tmp_path: Path, seed: int, formula: str) -> None:
    """Catches an error of 1e-4 in an estimate or a standard error, which lme4's own are too rough to show."""
    frame = study(60, 10, 10, seed=seed, sd=0.8)
    frame = frame.assign(trial_type=pd.Categorical(frame["trial_type"], categories=list(TYPES)))
    rscript.agrees(mixed.fit(frame, formula), glmmtmb.fit(frame, formula, tmp_path))


@pytest.mark.parametrize("seed", [13, 14])
def test_random_slopes(tmp_path: Path, seed: int) -> None:
    """Catches a correlation of slopes and intercepts that is lost on the way to the standard errors."""
    frame, formula = slopes(seed), "y ~ x + (x|id) + (1|item)"
    rscript.agrees(mixed.fit(frame, formula), glmmtmb.fit(frame, formula, tmp_path))


def test_the_default_analysis(tmp_path: Path) -> None:
    """Catches slopes of images or participants that are fitted to other columns or rows than those named.

    `||` is written out as a term for each column, because R correlates those of a factor.
    """
    frame = study_with_images(5)
    wrong, right = (frame["trial_type"] == kind for kind in TYPES[1:])
    frame = frame.assign(wrong=wrong.astype(int), right=right.astype(int))
    by_hand = " + ".join(
        f"(0 + {column}|{group})"
        for group, columns in (("participant", ("wrong", "right")), ("category", SLOPES), ("item", SLOPES))
        for column in columns
    )
    fixed = "correct ~ trial_type * saliency * examples"
    other = glmmtmb.fit(frame, f"{fixed} + (1|participant) + (1|category) + (1|item) + {by_hand}", tmp_path)
    model = mixed.fit(
        frame, f"{fixed} + (trial_type||participant) + (saliency + examples||category) + (saliency + examples||item)"
    )
    assert [c.term for c in model.coefficients] == other["terms"]
    assert min(effect.sd for effect in model.random) > 0.05  # at 0 the two would be compared with less
    np.testing.assert_allclose([c.estimate for c in model.coefficients], other["estimate"], atol=1e-3, rtol=0)
    np.testing.assert_allclose([c.se for c in model.coefficients], other["se"], atol=1e-3, rtol=0)
    assert model.loglik == pytest.approx(other["loglik"][0], abs=1e-3)
    assert model.df == other["df"][0]
    theirs = sorted(zip((group.split(".")[0] for group in other["group"]), other["sd"], strict=True))
    np.testing.assert_allclose(
        [sd for _, sd in sorted((effect.group, effect.sd) for effect in model.random)],
        [sd for _, sd in theirs],
        atol=2e-3,
    )


def test_nested_groups(tmp_path: Path) -> None:
    """Catches levels of an inner group that are pooled over the outer one."""
    frame = slopes(6)
    rscript.agrees(mixed.fit(frame, "y ~ x + (1|id/item)"), glmmtmb.fit(frame, "y ~ x + (1|id/item)", tmp_path), 1e-3)


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("verbagg", "r2 ~ Anger + Gender + btype + situ + (1|id) + (1|item)"),
        ("cbpp", "cbind(incidence, size - incidence) ~ period + (1|herd)"),
    ],
)
def test_real_answers(tmp_path: Path, real: Path, name: str, formula: str) -> None:
    """Catches an error of 1e-4 on data that nobody simulated; lme4's published digits of these two are off by more."""
    frame = responses.table(real / "responses" / f"{name}.csv", factors=("period",) if name == "cbpp" else ())
    if name == "cbpp":
        frame["period"] = pd.Categorical(frame["period"])
    rscript.agrees(mixed.fit(frame, formula), glmmtmb.fit(frame, formula, tmp_path))


@pytest.mark.parametrize("reml", [True, False])
def test_linear_models(tmp_path: Path, reml: bool) -> None:
    """Catches REML taken for ML, or the other way round."""
    frame, formula = slopes(8), "time ~ x + (x|id) + (1|item)"
    rscript.agrees(
        mixed.fit(frame, formula, family="gaussian", reml=reml), glmmtmb.fit(frame, formula, tmp_path, reml=reml)
    )
