"""ConditionAssets conditions in the analysis: contrasted by condition, never in the models of the two factors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

from core.errors import ForetellError
from study.analysis.exploratory import slopes
from study.analysis.models import mixed, random_effects
from study.analysis.planned import analysis as planned
from study.analysis.planned import contrasts, nested, placebos
from study.analysis.planned.contrasts import Contrast
from study.analysis.report import finding
from study.analysis.responses import reading as responses
from study.plan.preregistration import AnalysisPlan, Exclusions, PlannedContrast
from tests.study.analysis import simulated


@pytest.fixture(scope="module")
def study() -> pd.DataFrame:
    """A study of 10 people per condition, and 10 more whose maps were placebos: they answer as with none."""
    true, others = simulated.study(40, seed=4), simulated.study(40, seed=5)
    names = pd.Series(responses.CONDITION_OF_FACTORS)
    true["condition"] = [names[pair] for pair in zip(true["saliency"], true["examples"], strict=True)]
    misled = others[(others["saliency"] == 0) & (others["examples"] == 0)]
    misled = misled.assign(condition="random_maps", saliency=1, participant="placebo " + misled["participant"])
    return pd.concat([true, misled], ignore_index=True)


def test_placebos_do_not_change_the_models_of_the_two_factors(study: pd.DataFrame) -> None:
    """With saliency = 1 in their rows they would halve its effect."""
    data = responses.prepare(study)
    without = responses.prepare(study[study["condition"] != "random_maps"])
    pd.testing.assert_frame_equal(data.frame, without.frame)
    assert nested.analyze(data).as_dict() == nested.analyze(without).as_dict()
    assert any("placebo" in message for message in data.messages)
    assert set(data.placebos["condition"]) == {"random_maps"}
    assert data.sha256 != without.sha256


def test_of_the_four_conditions_both_models_say_the_same(study: pd.DataFrame) -> None:
    """Exact: without placebos, type by condition is the interaction model in other words."""
    data = responses.prepare(study[study["condition"] != "random_maps"])
    model = simulated.analyze_as_in_the_paper(data).models["interaction"]
    asked = [Contrast("both", "saliency"), Contrast("examples", "none", ("std_correct",))]
    columns = ["estimate", "se", "z", "p_holm"]
    found, expected = placebos.table(placebos.fit(data), asked), contrasts.table(model, asked)
    np.testing.assert_allclose(found[columns], expected[columns], rtol=2e-3, atol=2e-4)


def test_a_placebo_is_compared_with_the_truth(study: pd.DataFrame) -> None:
    """Maps add .7 of log-odds in this world and placebos nothing."""
    data = responses.prepare(study)
    model = nested.analyze(data).models["interaction"]
    asked = [
        Contrast("random_maps", "none", ("adv_incorrect",)),
        Contrast("saliency", "none", ("adv_incorrect",)),
        Contrast("saliency", "random_maps", ("adv_incorrect",)),
    ]
    table = placebos.together(data, model, asked).table
    assert list(table["contrast"]) == [contrast.name for contrast in asked]
    assert table["p_holm"].ge(table["p"]).all()
    assert table["low"][0] < 0 < table["high"][0]
    assert table["estimate"][1] - table["estimate"][2] == pytest.approx(table["estimate"][0], abs=0.05)
    alone = contrasts.table(model, asked[1:2])
    assert table["estimate"][1] == alone["estimate"][0]


def test_a_plan_can_contrast_a_placebo_and_excludes_there_too(study: pd.DataFrame) -> None:
    plan = AnalysisPlan(
        contrasts=(PlannedContrast(more="saliency", less="random_maps"),),
        exclusions=Exclusions(least_accuracy=0.5),
        participants=10,
    )
    done = planned.execute(responses.prepare(study), plan)
    assert list(done.contrasts["contrast"]) == ["saliency - random_maps"]
    right = study[study["trial_type"] == "std_correct"].groupby("participant")["correct"].mean()
    assert done.exclusions["people"].tolist() == [int((right < 0.5).sum())]
    with pytest.raises(ValueError, match="no condition 'random_map'"):
        PlannedContrast(more="random_map")


def test_planned_slopes_hold_for_placebos_too() -> None:
    """With intercepts only a difference between categories was taken for evidence: half the standard error.

    Oracle: the same model written out, with slopes of the condition by category.
    """
    rng = np.random.default_rng(8)
    names, kinds = ["none", "saliency", "random_maps"], simulated.TYPES
    own = {name: rng.normal(0, 1.5, 10) * (name != "none") for name in names}
    rows = [
        (f"p{i}", f"c{c}", kind, names[i % 3], int(rng.random() < 1 / (1 + np.exp(-own[names[i % 3]][c]))))
        for i in range(45)
        for c in range(10)
        for kind in kinds
    ]
    frame = pd.DataFrame(rows, columns=["participant", "category", "trial_type", "condition", "correct"])
    frame = frame.assign(saliency=(frame["condition"] != "none").astype(int), examples=0)
    data = responses.prepare(frame)
    slopes = "(1|participant) + (saliency||category)"
    model = mixed.fit(data.frame, f"correct ~ trial_type * saliency + {slopes}")
    asked = [Contrast("saliency", "random_maps")]
    found = placebos.together(data, model, asked).table
    coded = data.every.assign(condition=pd.Categorical(data.every["condition"], categories=names))
    written = mixed.fit(coded, "correct ~ trial_type * condition + (1|participant) + (condition||category)")
    cells = {name: {"condition": pd.Categorical([name], categories=names)} for name in names}
    expected = contrasts.table(written, asked, cells=cells)
    np.testing.assert_allclose(found[["estimate", "se"]], expected[["estimate", "se"]], rtol=1e-3)
    assert found["se"][0] > 2 * placebos.table(placebos.fit(data), asked)["se"][0]


@pytest.mark.parametrize(
    ("planned_effects", "expected"),
    [
        ("(1|participant) + (1|category)", "(1|participant) + (1|category)"),
        (
            "(trial_type||participant) + (saliency*examples||category)",
            "(trial_type||participant) + (condition||category)",
        ),
        ("(0 + trial_type:saliency|category)", "(0 + trial_type:condition|category)"),
    ],
)
def test_slopes_of_explanations_become_slopes_of_conditions(planned_effects: str, expected: str) -> None:
    assert random_effects.by_condition(planned_effects) == expected


def test_slopes_of_conditions_without_variance_are_left_out() -> None:
    """A singular slope of conditions was never left out: its columns are named after the conditions."""
    effects = [
        ("category", ("(Intercept)",), np.array([[1.0]])),
        ("category", ("conditionsaliency",), np.array([[0.0]])),
        ("category", ("conditionrandom_maps",), np.array([[0.0]])),
    ]
    assert random_effects.simpler("(condition||category)", effects) == "(1|category)"
    effects[1] = ("category", ("conditionsaliency",), np.array([[1.0]]))
    assert random_effects.simpler("(condition||category)", effects) is None


def test_what_cannot_be_compared_is_said(study: pd.DataFrame) -> None:
    with pytest.raises(ForetellError, match="Every response is from a condition outside the two factors"):
        responses.prepare(study[study["condition"] == "random_maps"])
    with pytest.raises(ForetellError, match="No participants were in the condition 'wrong_examples'"):
        placebos.table(placebos.fit(responses.prepare(study)), [Contrast("wrong_examples", "none")])


def test_the_comparison_with_slopes_has_every_contrast_of_the_headline(study: pd.DataFrame) -> None:
    """Catches contrasts with placebos that the comparison drops, and Holm's correction for 9 in place of 12."""
    data = responses.prepare(study)
    analysis = nested.analyze(data)
    said = finding.compute_headline(analysis, data, None)
    rows = slopes.compare(data, analysis).pipe(lambda table: table[table["points"].notna()])
    plain = rows.drop_duplicates("result", keep="first").set_index("result")
    assert list(plain.index) == list(said.contrasts["contrast"])
    assert len(plain) == 12
    np.testing.assert_allclose(plain["p_holm"], said.contrasts["p_holm"])
    np.testing.assert_allclose(plain["p_holm"], multipletests(said.contrasts["p"], method="holm")[1], rtol=1e-12)
    assert list(rows.drop_duplicates("result", keep="last")["result"]) == list(plain.index)
