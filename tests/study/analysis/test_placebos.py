"""ConditionAssets conditions in the analysis: contrasted by condition, never in the models of the two factors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis import contrasts, nested, placebos, planned, responses
from study.analysis.contrasts import Contrast
from study.plan.preregistration import Exclusions, Plan, PlannedContrast
from tests.study.analysis import simulated


@pytest.fixture(scope="module")
def study() -> pd.DataFrame:
    """A study of 10 people per condition, and 10 more whose maps were placebos: they answer as with none."""
    true, others = simulated.study(40, seed=4), simulated.study(40, seed=5)
    names = pd.Series(responses.CONDITIONS)
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
    model = nested.analyze(data).models["interaction"]
    asked = [Contrast("both", "saliency"), Contrast("examples", "none", ("std_correct",))]
    columns = ["estimate", "se", "z", "p_holm"]
    found, expected = placebos.table(data, asked), contrasts.table(model, asked)
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
    table = placebos.together(data, model, asked)
    assert list(table["contrast"]) == [contrast.name for contrast in asked]
    assert table["p_holm"].ge(table["p"]).all()
    assert table["low"][0] < 0 < table["high"][0]
    assert table["estimate"][1] - table["estimate"][2] == pytest.approx(table["estimate"][0], abs=0.05)
    alone = contrasts.table(model, asked[1:2])
    assert table["estimate"][1] == alone["estimate"][0]


def test_a_plan_can_contrast_a_placebo_and_excludes_there_too(study: pd.DataFrame) -> None:
    plan = Plan(
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


def test_what_cannot_be_compared_is_said(study: pd.DataFrame) -> None:
    with pytest.raises(ForetellError, match="Every answer is of a condition beside the two factors"):
        responses.prepare(study[study["condition"] == "random_maps"])
    with pytest.raises(ForetellError, match="Nobody was in the condition 'wrong_examples'"):
        placebos.table(responses.prepare(study), [Contrast("wrong_examples", "none")])
