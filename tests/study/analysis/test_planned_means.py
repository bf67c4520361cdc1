"""Estimated means as a key of the plan."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from core.errors import ForetellError
from study.analysis.means.means import EstimatedMeans
from study.analysis.planned import analysis as planned
from study.analysis.planned import contrasts, means
from study.analysis.report import means as reported
from study.analysis.report.finding import compute_headline
from study.analysis.report.report import Report
from study.analysis.responses import reading as responses
from study.plan.means import PlannedMeans
from study.plan.preregistration import NESTED, AnalysisPlan
from tests.study.analysis.simulated import study

BY_TYPE = "saliency * examples | trial_type"


@pytest.fixture(scope="module")
def data() -> responses.Responses:
    return responses.prepare(study(24, 8, 8, seed=11))


def plan(**wanted: object) -> AnalysisPlan:
    return AnalysisPlan.model_validate({"models": NESTED, "tests": "chi_square", "means": wanted})


def test_planned_means_agree_with_planned_contrasts(data: responses.Responses) -> None:
    """Catches means of other rows or another model than the plan's, and a table without its label and coverage.

    Oracle: the contrasts, whose averages over the random effects are other code.
    """
    found = planned.execute(data, plan(of=[BY_TYPE], adjust="none").model_copy(update={"alpha": 0.1}))
    made = found.means[BY_TYPE]
    assert isinstance(made, EstimatedMeans)
    pairs = made.contrasts[made.contrasts["contrast"] == "saliency0 examples0 - saliency1 examples0"]
    wanted = [contrasts.Contrast("saliency", "none", (kind,)) for kind in pairs["trial_type"]]
    own = contrasts.table(found.analysis.largest, wanted, level=0.9)
    for mine, theirs in (("estimate", "points"), ("low", "points_high"), ("high", "points_low")):
        np.testing.assert_allclose(-100 * pairs[mine], own[theirs], rtol=1e-6)
    section = reported.list_sections(found)[0]
    assert section.heading == f"Estimated means of {BY_TYPE}"
    assert (section.label, section.parts[0].coverage) == ("planned", "90%")
    tables = reported.tabulate(found)
    assert list(tables) == ["means_1", "means_1_contrasts"]
    pd.testing.assert_frame_equal(tables["means_1"], made.means.drop(columns="df"))


def test_a_report_has_the_planned_means_and_why_others_are_missing(data: responses.Responses) -> None:
    """Catches planned means that only the page shows, and one impossible request that costs the report the others."""
    found = planned.execute(data, plan(of=["saliency", "examples"], contrasts=["saliency1 - saliency0"]))
    assert isinstance(found.means["examples"], str)
    report = Report(found.analysis, data, compute_headline(found.analysis, data, found), found)
    files = report.describe_models()
    assert "means_1_contrasts.csv" in files
    assert "means_2.csv" not in files
    page = report.describe_all([], [])["report.html"]
    text = page.decode() if isinstance(page, bytes) else page
    assert "Estimated means of saliency " in text
    assert "names &#39;saliency1&#39;, which is no level; there are examples0, examples1" in text


def test_plans_without_means_keep_their_hash_and_others_state_them() -> None:
    """Catches a key that changes the hash of every study frozen before it, and one that no hash covers."""
    assert "means" not in AnalysisPlan().model_dump(mode="json")
    assert plan().sha256 == AnalysisPlan(models=NESTED, tests="chi_square").sha256
    assert plan(of=["saliency"]).sha256 != plan(of=["saliency"], adjust="mvt").sha256 != plan().sha256


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"of": ["network"]}, "'network' cannot be read: name each of trial_type, saliency, examples at most once"),
        ({"of": ["saliency * saliency"]}, "cannot be read"),
        ({"of": ["saliency | trial_type | examples"]}, "cannot be read"),
        ({"of": ["saliency"], "adjust": "tukey", "contrasts": ["reference"]}, "tukey corrects all pairs"),
        ({"of": ["saliency"], "adjust": "sidak"}, "'holm', 'tukey', 'mvt' or 'none'"),
        ({"off": ["saliency"]}, "Extra inputs are not permitted"),
    ],
)
def test_means_that_cannot_be_planned(wanted: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        plan(**wanted)
    assert said in str(refused.value)


def test_means_of_a_factor_that_the_largest_model_lacks_are_refused() -> None:
    """Catches a plan that can be frozen and never executed."""
    models = {"null": "trial_type", "explanation": "trial_type + saliency"}
    with pytest.raises(ValidationError, match=r"analysis\.means names examples, which the model explanation does not"):
        AnalysisPlan.model_validate({"models": models, "means": {"of": ["saliency * examples"]}})


@pytest.mark.parametrize(
    ("contrast", "said"),
    [
        ("saliency2 - saliency0", "names 'saliency2', which is no level; there are saliency0, saliency1"),
        ("saliency1=1, saliency0=-0.5", "sum to 0.5 instead of 0"),
    ],
)
def test_contrasts_that_no_estimate_can_have_are_refused_before_the_build(contrast: str, said: str) -> None:
    with pytest.raises(ForetellError) as refused:
        means.check(PlannedMeans(of=("saliency",), contrasts=(contrast,)))
    assert said in str(refused.value)
    means.check(PlannedMeans(of=("trial_type", "saliency"), contrasts=("pairwise", "reference")))
