"""The plan: read and refused as a whole, hashed, and executed as written."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from core.errors import ForetellError
from study.analysis.planned import analysis as planned
from study.analysis.planned import contrasts, nested
from study.analysis.responses import reading as responses
from study.plan.preregistration import AnalysisPlan, Exclusions, complete
from tests.study.analysis.simulated import study


@pytest.fixture(scope="module")
def data() -> responses.Responses:
    frame = study(24, 8, 8, seed=11)
    rng = np.random.default_rng(1)
    return responses.prepare(frame.assign(rt_ms=rng.uniform(500, 3000, len(frame))))


def test_an_empty_plan_is_the_papers_analysis(data: responses.Responses) -> None:
    found = planned.execute(data, AnalysisPlan())
    plain = nested.analyze(data)
    assert found.analysis.as_dict() == plain.as_dict()
    pd.testing.assert_frame_equal(found.contrasts, contrasts.table(plain.models["interaction"]))
    assert found.exclusions.empty
    assert found.final


def test_exclusions_are_counted_by_rule(data: responses.Responses) -> None:
    # Hand-made: p0 hasty, p1 nearly absent, p2 always wrong where the AI is right, and single answers beyond bounds.
    frame = data.frame.copy()
    frame.loc[frame["participant"] == "p0", "rt_ms"] = 50.0
    frame = frame.drop(frame.index[frame["participant"] == "p1"][3:])
    frame.loc[(frame["participant"] == "p2") & (frame["trial_type"] == "std_correct"), "correct"] = 0
    some = frame.index[frame["participant"] == "p5"]
    frame.loc[some[:2], "rt_ms"] = 60.0
    frame.loc[some[2:5], "rt_ms"] = 90_000.0
    rules = Exclusions(fewest_responses=10, most_fast=0.5, least_accuracy=0.1, fastest_ms=150, slowest_ms=30_000)
    kept, counts = planned.exclude(frame, rules)
    assert counts.to_dict("list") == {
        "rule": [
            "fewer than 10 responses",
            "more than 50% of responses faster than 150 ms",
            "accuracy below 10% where the AI is right",
            "responses faster than 150 ms",
            "responses slower than 30000 ms",
        ],
        "people": [1, 1, 1, 0, 0],
        "responses": [3, 24, 24, 2, 3],
    }
    assert len(kept) == len(frame) - 56
    assert not {"p0", "p1", "p2"} & set(kept["participant"])


def test_the_named_models_and_contrasts_are_the_ones_made(data: responses.Responses) -> None:
    plan = AnalysisPlan(
        models={"a": "trial_type", "b": "trial_type * saliency"},
        contrasts=({"more": "saliency", "trial_types": ("std_correct",)},),
        participants=40,
    )
    found = planned.execute(data, plan)
    assert list(found.analysis.models) == ["a", "b"]
    assert [test.df for test in found.analysis.tests] == [3]
    assert list(found.contrasts["contrast"]) == ["saliency - none, std_correct"]
    assert not found.final
    assert "6 of the 40 planned participants" in found.stopping


def test_the_hash_is_that_of_the_content() -> None:
    first = AnalysisPlan(exclusions={"fastest_ms": 150, "slowest_ms": 9000})
    assert first.sha256 == AnalysisPlan(exclusions={"slowest_ms": 9000, "fastest_ms": 150}).sha256
    others = {
        first.sha256,
        AnalysisPlan().sha256,
        AnalysisPlan(alpha=0.01).sha256,
        AnalysisPlan(participants=40).sha256,
    }
    assert len(others) == 4


def test_models_are_in_the_order_of_their_terms_whatever_that_of_the_file(data: responses.Responses) -> None:
    """Catches the smallest model taken for the largest, without a test and without a word, in a manifest whose keys
    were sorted: the study's hash does not depend on their order."""
    names = {"null": "trial_type", "explanation": "trial_type + saliency", "x": "saliency * trial_type"}
    plan = AnalysisPlan(models=dict(sorted(names.items())))
    assert list(plan.models) == ["null", "explanation", "x"]
    assert plan.sha256 == AnalysisPlan(models=names).sha256
    assert [test.df for test in planned.execute(data, plan).analysis.tests] == [1, 2]


def test_models_that_are_not_nested_are_refused_before_a_build() -> None:
    plan = AnalysisPlan(models={"a": "trial_type + examples", "b": "trial_type + saliency"})
    with pytest.raises(ValueError, match="b must have every term of a and more"):
        plan.check_conditions(["none", "saliency"], to_build=True)
    plan.check_conditions(["none", "saliency", "examples", "both"], to_build=False)  # a bundle stays as it was frozen


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"models": {"x": "saliency + mood"}}, "may contain only trial_type, saliency, examples"),
        ({"models": {"x": "saliency; import os"}}, "may contain only"),
        ({"models": {}}, "at least 1"),
        ({"contrasts": [{"more": "maps"}]}, "no condition 'maps'"),
        ({"exclusions": {"most_fast": 0.1}}, "most_fast needs fastest_ms"),
        ({"exclusions": {"lazy": True}}, "Extra inputs"),
        ({"alpha": 0}, "greater than 0"),
    ],
)
def test_wrong_plans_are_refused(content: dict, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        AnalysisPlan.model_validate(content)


def test_rules_without_their_column_and_without_people_left(data: responses.Responses) -> None:
    bare = responses.Responses(data.frame.drop(columns="rt_ms"))
    with pytest.raises(ForetellError, match="no column 'rt_ms'"):
        planned.execute(bare, AnalysisPlan(exclusions={"fastest_ms": 150}))
    with pytest.raises(ForetellError, match="leave 0 participants of 24"):
        planned.execute(data, AnalysisPlan(exclusions={"fewest_responses": 1000}))


DEFAULT_HASH = "c2a3e2ed74ba63bfd9216efb4421500f7187ad9779cf340442598e073572ef98"
SLOPES = "(trial_type || participant) + (saliency + examples || category)"


def test_planned_slopes_are_fitted_and_their_reduction_is_said(data: responses.Responses) -> None:
    """Catches a plan whose slopes are read and then left out of models and contrasts."""
    plan = AnalysisPlan(
        models={"a": f"trial_type + {SLOPES}", "b": f"trial_type * saliency + {SLOPES}"},
        contrasts=({"more": "saliency", "trial_types": ["std_correct"]},),
    )
    found = planned.execute(data, plan)
    groups = {(effect.group, effect.term) for effect in found.analysis.largest.random}
    assert ("participant", "(Intercept)") in groups
    slopes = any(term != "(Intercept)" for _, term in groups)
    assert slopes or "random effects" in " ".join(found.analysis.messages)
    pd.testing.assert_frame_equal(
        found.contrasts,
        contrasts.table(found.analysis.largest, [contrasts.Contrast("saliency", "none", ("std_correct",))]),
    )


@pytest.mark.parametrize(
    "models",
    [
        {"a": "trial_type + (1 | participant)"},
        {"a": "trial_type + (1 | participant) + (rt_ms | category)"},
        {"a": "trial_type + (1 | participant) + (1 | herd)"},
        {"a": "trial_type", "b": f"trial_type + saliency + {SLOPES}"},
    ],
)
def test_random_effects_that_cannot_be_planned(models: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="random effects"):
        AnalysisPlan(models=models)


def test_a_plan_without_slopes_keeps_its_hash() -> None:
    # The hash of the default plan before slopes could be planned: studies frozen then are the same today.
    assert AnalysisPlan.model_validate(complete({})).sha256 == DEFAULT_HASH
