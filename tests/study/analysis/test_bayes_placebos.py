"""Bayesian differences from conditions outside the two factors: a second fit, of trial type by condition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from core.errors import ForetellError
from study.analysis.bayes import contrasts
from study.analysis.bayes.diagnostics import Diagnostics
from study.analysis.exploratory import analysis, bayes, posteriors
from study.analysis.exploratory.analysis import AnalysedStudy
from study.analysis.planned import analysis as planned
from study.analysis.planned.contrasts import Contrast
from study.analysis.responses.reading import prepare
from study.plan.preregistration import AnalysisPlan, PlannedContrast
from tests.study.analysis.simulated import study

CERTAIN = ("std_correct",)
PLAN = AnalysisPlan(
    models={"null": "trial_type", "interaction": "trial_type * saliency * examples"},
    tests="chi_square",
    equivalence=10,
    contrasts=(
        PlannedContrast(more="random_maps", trial_types=CERTAIN),
        PlannedContrast(more="saliency", trial_types=CERTAIN),
        PlannedContrast(more="saliency", less="random_maps", trial_types=CERTAIN),
    ),
)
SD = 0.6 * np.sqrt(2)
"""Of participants and categories together, on the link scale."""


@pytest.fixture(scope="module")
def one() -> AnalysedStudy:
    """Half of those without explanations saw placebos, with which they guess where the AI is right."""
    frame = study(64, 8, 6, seed=21).reset_index(drop=True)
    number = frame["participant"].str[1:].astype(int)
    misled = number % 8 == 4
    guesses = np.random.default_rng(0).integers(2, size=len(frame))
    names = {(0, 0): "none", (1, 0): "saliency", (0, 1): "examples", (1, 1): "both"}
    condition = [names[pair] for pair in zip(frame["saliency"], frame["examples"], strict=True)]
    frame = frame.assign(condition=np.where(misled, "random_maps", condition))
    frame["saliency"] = frame["saliency"].where(~misled, 1)
    frame["correct"] = frame["correct"].where(~(misled & (frame["trial_type"] == "std_correct")), guesses)
    done = planned.execute(prepare(frame), PLAN)
    return AnalysedStudy(done.data, seed=1, models=done.analysis, plan=done)


@pytest.mark.slow
def test_a_planted_effect_of_placebos_is_found(one: AnalysedStudy) -> None:
    """Catches contrasts with placebos that are left out, in another order, or of another condition; and a model of the
    factors that takes placebos for saliency maps. Expected: the planted accuracies, by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    without, shown = (float(expit(level + SD * nodes) @ weights / weights.sum()) for level in (1.6, 2.3))
    true = 100 * np.array([0.5 - without, shown - without, shown - 0.5])
    made = analysis.compute("bayes_differences", one)
    table = made.table
    assert one.plan is not None
    assert list(table["contrast"]) == list(one.plan.contrasts["contrast"]) == [c.name for c in wanted()]
    assert ((table["points_low"] < true) & (true < table["points_high"])).all()
    assert table["points_high"][0] < 0 < table["points_low"][2]
    assert table["p_above"][0] < 0.01
    assert table["p_above"][2] > 0.99
    assert table["p_within"].between(0, 1).all()
    likely = one.plan.contrasts
    se = (likely["points_high"] - likely["points_low"]) / 3.92
    assert ((table["points"] - likely["points"]).abs() < 0.6 * se).all()
    assert made.figure is not None
    assert len(made.figure.data[0].x) == 3


def wanted() -> list[Contrast]:
    return [Contrast(c.more, c.less, c.trial_types) for c in PLAN.contrasts]


@pytest.mark.slow
def test_the_fit_of_the_factors_is_left_as_it_was(one: AnalysedStudy) -> None:
    """Catches placebos among the rows of the factors' model, and a contrast of the factors from the second fit."""
    assert "condition" not in posteriors.fit(one).design.model.levels
    assert len(posteriors.fit(one).design.columns) == len(one.frame) < len(one.data.every)
    alone = contrasts.tabulate(posteriors.fit(one), [wanted()[1]], (-10.0, 10.0))
    table = posteriors.tabulate_differences(one)
    pd.testing.assert_series_equal(table.loc[1], alone.loc[0], check_names=False)
    assert posteriors.list_fits(one) == [posteriors.fit(one), posteriors.fit_conditions(one)]


@pytest.mark.slow
def test_both_fits_are_described(one: AnalysedStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a diagnosis of one fit only, and differences of a second fit that is not to be believed."""
    made = analysis.compute("bayes_differences", one)
    assert made.conclusion.count("The fit can be believed") == 2
    assert "Random maps vs no explanation, AI right, −" in made.conclusion
    assert "Model: correct ~ trial_type * condition + (1|participant) + (1|category)." in made.says
    assert bayes.estimate_differences(one) > 1.9 * bayes.estimate_seconds(one)
    monkeypatch.setitem(vars(posteriors.fit_conditions(one)), "diagnostics", Diagnostics(1.3, 30, 2, 4000))
    partly = analysis.compute("bayes_differences", one)
    assert list(partly.table["points"].isna()) == [True, False, True]
    assert " of 1 " in partly.conclusion
    assert "Do not believe this fit: the chains disagree" in partly.conclusion
    monkeypatch.setitem(vars(posteriors.fit(one)), "diagnostics", Diagnostics(1.3, 30, 2, 4000))
    with pytest.raises(ForetellError, match="Do not believe this fit"):
        posteriors.tabulate_differences(one)


def test_no_contrast_is_one_sentence(one: AnalysedStudy) -> None:
    """Catches an unexpected error where a plan names no contrasts."""
    assert one.plan is not None
    none = replace(one, plan=replace(one.plan, plan=PLAN.model_copy(update={"contrasts": ()})))
    with pytest.raises(ForetellError, match="No contrast is between two conditions that have responses"):
        posteriors.tabulate_differences(none)
