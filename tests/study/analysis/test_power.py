"""Simulated studies have the truth they were drawn from, and power is the share of them that find it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import binom, norm

from core.errors import ForetellError
from study.analysis.planned import contrasts, nested
from study.analysis.planned.contrasts import FACTORS
from study.analysis.power import outcomes, truths
from study.analysis.power import simulation as power
from study.bundle import TRIAL_TYPES
from study.plan.preregistration import DEFAULT, NESTED
from tests.study.analysis.test_cognitive import trials

SMALL = truths.AdditiveTruth(truths.TABLE_1, categories=8)
FAST = {"models": NESTED, "tests": "chi_square"}
"""Where the models are not the subject: those with random intercepts take a tenth of the default ones' time."""


def test_a_study_has_the_accuracy_of_its_truth() -> None:
    # Oracle: Table 1 written out for three cells, averaged over people and categories by quadrature.
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    sd = np.hypot(truths.PARTICIPANT_SD, truths.CATEGORY_SD)
    cells = {
        ("none", 0): -1.06,
        ("saliency", 1): -1.06 + 0.09 + 1.01 - 0.29,
        ("both", 2): -1.06 + 4.64 + 1.01 - 1.71 + 0.46 - 2.01 - 0.53 + 1.18,
    }
    frame = truths.AdditiveTruth(truths.TABLE_1, categories=400).study(60, np.random.default_rng(1))
    assert len(frame) == 4 * 60 * 400 * 3
    for (condition, kind), eta in cells.items():
        expected = expit(eta + sd * nodes) @ weights / weights.sum()
        chosen = frame["trial_type"] == TRIAL_TYPES[kind]
        for name, value in FACTORS[condition].items():
            chosen &= frame[name] == value
        assert frame.loc[chosen, "correct"].mean() == pytest.approx(expected, abs=0.03)


def test_the_assumed_accuracy_is_integrated_over_every_random_effect() -> None:
    """Catches the accuracy of a participant without random effects, and slopes that are left out of it.

    Oracle: the coefficients of Table 1 written out, integrated by the adaptive quadrature of SciPy.
    """
    world = truths.AdditiveTruth(truths.TABLE_1, person_slope_sd=0.8, category_slope_sd=0.5).scale(0.5)
    table = world.tabulate_means().set_index(["condition", "trial_type"])["accuracy"]
    assert len(table) == 4 * 3
    intercepts = truths.PARTICIPANT_SD**2 + truths.CATEGORY_SD**2
    cells = {
        ("none", "adv_incorrect"): (-1.06, intercepts),
        ("saliency", "std_incorrect"): (-1.06 + 0.09 + 0.5 * (1.01 - 0.29), intercepts + 0.8**2 + 0.5**2),
        ("both", "std_correct"): (
            -1.06 + 4.64 + 0.5 * (1.01 - 1.71 + 0.46 - 2.01 - 0.53 + 1.18),
            intercepts + 0.8**2 + 2 * 0.5**2,
        ),
    }
    for cell, (eta, variance) in cells.items():
        expected, _ = quad(lambda b, e, v: expit(e + b) * norm.pdf(b, scale=v**0.5), -12, 12, args=(eta, variance))
        assert table[cell] == pytest.approx(expected, abs=1e-6)


def test_the_accuracy_of_a_mixture_is_that_of_its_simulated_studies() -> None:
    """Oracle: 4,000 participants per condition, drawn and not integrated; within four standard errors."""
    world = truths.Theories({"map_reader": 2.0, "bayesian_learner": 1.0, "guesser": 0.0}, list(trials().values()))
    table = world.tabulate_means().set_index(["condition", "trial_type"])["accuracy"]
    frame = world.study(4000, np.random.default_rng(4))
    for condition, factors in FACTORS.items():
        seen = frame[(frame["saliency"] == factors["saliency"]) & (frame["examples"] == factors["examples"])]
        by_participant = seen.groupby(["trial_type", "participant"], observed=True)["correct"].mean()
        for kind in TRIAL_TYPES:
            each = by_participant[kind]
            assert table[condition, kind] == pytest.approx(each.mean(), abs=4 * each.std() / len(each) ** 0.5)


def test_without_an_effect_power_is_alpha() -> None:
    """Catches effects that 0 does not remove, and tests that reject too often.

    The test's own size: 5 % of 60 studies, within the central 99.9 % of the binomial. No cell is near 100%: a
    separated study, which is fitted twice, tells nothing more of the size (`test_separated_studies_count`).
    """
    world = truths.AdditiveTruth({**truths.TABLE_1, "": (-1.06, 0.09, 2.0)}, categories=8)
    table = power.curve(world, [6], studies=60, effects=[0.0], workers=1).set_index("test")
    for test in table.index:
        assert round(table.loc[test, "power"] * 60) <= binom.ppf(0.9995, 60, 0.06)
        assert table.loc[test, "low"] < 0.05 < table.loc[test, "high"]


def test_power_grows_with_people_and_effects() -> None:
    table = power.curve(SMALL, [4, 16], studies=25, effects=[0.5, 1.0], workers=1, **FAST)
    interaction = table[table["test"] == "explanation - interaction"].set_index(["per_condition", "effect"])["power"]
    assert interaction[16, 1.0] >= interaction[4, 1.0] >= interaction[4, 0.5] - 0.2
    assert interaction[16, 1.0] > 0.9
    assert ((table["low"] <= table["power"]) & (table["power"] <= table["high"])).all()
    assert (table["studies"] + table["failed"] == 25).all()
    found = power.enough(table, 0.7).set_index(["effect", "test"])["per_condition"]
    assert found[1.0, "explanation - interaction"] <= 16
    least = power.smallest_effect(table, 0.7).set_index(["per_condition", "test"])["effect"]
    assert least[16, "explanation - interaction"] <= 1.0
    priced = power.with_cost(table, 4, 2.5)
    assert priced.loc[0, "cost"] == 4 * 4 * 2.5
    assert len(power.figure(table).data) == 4


def test_same_seed_same_power_on_any_number_of_cores_and_either_engine() -> None:
    """Catches results in the order in which workers finish, and a study that is lost or simulated twice."""
    how = {"studies": 4, "seed": 3, **FAST}
    one = power.curve(SMALL, [4, 6], workers=1, **how)
    assert one.equals(power.curve(SMALL, [4, 6], workers=2, **how))
    pytest.importorskip("ray")
    assert one.equals(power.curve(SMALL, [4, 6], workers=2, engine="ray", **how))


def test_an_engine_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ForetellError, match=r"Unknown engine 'dask'\. Use one of processes, ray"):
        power.curve(SMALL, [4], studies=1, engine="dask")


def test_a_pilot_gives_its_own_estimates() -> None:
    frame = truths.AdditiveTruth(truths.TABLE_1, categories=12).study(12, np.random.default_rng(2))
    model = nested.analyze(frame).models["interaction"]
    world = truths.from_pilot(model, tuple(FACTORS), 20, 1)
    known = {c.term: c.estimate for c in model.coefficients}
    assert world.coefficients["saliency:examples"] == (
        known["saliency:examples"],
        known["trial_typestd_incorrect:saliency:examples"],
        known["trial_typestd_correct:saliency:examples"],
    )
    assert world.person_sd == model.random[0].sd
    with pytest.raises(ForetellError, match="does not determine"):
        truths.from_pilot(nested.analyze(frame[frame["examples"] == 0]).models["interaction"], tuple(FACTORS), 20, 1)


@pytest.mark.parametrize("conditions", [("none", "saliency"), ("none", "both")])
def test_a_pilot_of_two_conditions_gives_their_study(conditions: tuple[str, str]) -> None:
    """Catches a pilot that is refused for want of the other conditions, and an effect of both that is halved.

    Oracle: the accuracy of each cell of the pilot, which a model with every cell reproduces.
    """
    truth = truths.AdditiveTruth(truths.TABLE_1, categories=12, conditions=conditions)
    frame = truth.study(20, np.random.default_rng(2))
    world = truths.from_pilot(nested.analyze(frame).models["interaction"], conditions, 12, 1)
    table = world.tabulate_means().set_index(["condition", "trial_type"])["accuracy"]
    for condition in conditions:
        own = frame[frame["saliency"] == FACTORS[condition]["saliency"]]
        for kind, accuracy in own.groupby("trial_type", observed=True)["correct"].mean().items():
            assert table[condition, kind] == pytest.approx(accuracy, abs=0.03)


def test_theories_answer_the_frozen_trials() -> None:
    world = truths.Theories({"map_reader": 1.0}, list(trials().values()))
    frame = world.study(20, np.random.default_rng(1))
    shown = frame[frame["trial_type"] == "adv_incorrect"].groupby("saliency")["correct"].mean()
    assert shown[1] > shown[0] + 0.2
    table = power.curve(world, [10], studies=3, workers=1)
    assert table["power"].between(0, 1).all()
    with pytest.raises(ForetellError, match="Only effects stated as coefficients"):
        power.curve(world, [10], studies=3, effects=[0.5])
    with pytest.raises(ForetellError, match="at least 2 participants"):
        power.curve(SMALL, [1], studies=3)


def test_can_be_cancelled() -> None:
    def stop(done: int, total: int, what: str) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        power.curve(SMALL, [4], studies=20, workers=1, progress=stop, **FAST)


@pytest.mark.parametrize("seed", range(4))
def test_separated_studies_count(seed: int) -> None:
    """Catches studies with a certain cell counted as failed: their likelihood has a supremum, and the tests hold.

    Oracle: the analysis of the same responses by `nested`, which carries separation to its limit (decision 7).
    """
    frame = SMALL.study(4, np.random.default_rng(seed))
    frame.loc[frame["trial_type"] == "std_correct", "correct"] = 1
    for models, tests in ((NESTED, "chi_square"), (DEFAULT, "corrected")):
        expected = [test.decisive_p for test in nested.analyze(frame, fixed=models, tests=tests).tests]
        made, _, _ = outcomes.run_tests(frame, models, tests)
        assert [test.decisive_p for test in made] == pytest.approx(expected, abs=1e-3)


def test_planned_slopes_are_simulated_and_fitted() -> None:
    """Catches a power curve of intercepts where slopes are planned: here participants differ, and explanations do not.

    By the definition of a test at .05 at most some of 12 studies reject; with intercepts most do.
    """
    world = truths.AdditiveTruth({"": truths.TABLE_1[""]}, categories=10, person_slope_sd=2.5)
    slopes = " + (trial_type || participant) + (1 | category)"
    fixed = {"explanation": nested.FIXED["explanation"], "interaction": nested.FIXED["interaction"]}
    with_slopes = power.curve(world, [8], studies=12, models={n: f + slopes for n, f in fixed.items()}, workers=1)
    without = power.curve(world, [8], studies=12, models=fixed, workers=1)
    assert with_slopes["power"].iloc[0] <= 0.34
    assert without["power"].iloc[0] >= with_slopes["power"].iloc[0] + 0.3


def test_the_curve_has_lines_at_the_target_and_at_the_planned_size() -> None:
    """Catches a size of the plan that the figure does not show, and one that was not simulated."""
    table = power.curve(SMALL, [4, 6], studies=4, workers=1, **FAST)
    assert [shape.y0 for shape in power.figure(table).layout.shapes] == [power.TARGET]
    drawn = power.figure(table, planned=4)
    assert [shape.x0 for shape in drawn.layout.shapes if shape.y0 != power.TARGET] == [4]
    assert [note.text for note in drawn.layout.annotations] == ["planned: 4"]
    assert not power.figure(table, planned=5).layout.annotations
    assert power.figure(table, simulated=True).layout.title.text == "Simulated participants: not evidence"


def test_contrasts_are_those_of_the_analysis() -> None:
    """Catches contrasts without Holm's correction, and of another model than the largest one.

    Oracle: the analysis of the same responses by `nested`.
    """
    asked = contrasts.DEFAULT[:4]
    task = power._Task(5, 1.0, (3, 0, 5, 1000))
    found = power._study(SMALL, DEFAULT, "corrected", asked, None, task)
    frame = SMALL.study(5, np.random.default_rng(task.seed))
    expected = contrasts.table(nested.analyze(frame).largest, asked)
    assert list(found)[2:] == [f"contrast: {one.name}" for one in asked]
    assert list(found.values())[2:] == pytest.approx(list(expected["p_holm"]), abs=1e-6)
    table = power.curve(SMALL, [5], studies=2, workers=1, contrasts=asked)
    assert power.is_contrast(table).tolist() == [False] * 2 + [True] * 4
    assert power.name_test(table["test"].iloc[2]) == "Saliency maps vs no explanation, AI wrong (adversarial)"


def test_a_contrast_without_a_finite_estimate_is_not_significant() -> None:
    """Catches separated studies that are left out, so that power counts the clear ones only."""
    frame = SMALL.study(4, np.random.default_rng(0))
    frame.loc[(frame["trial_type"] == "std_correct") & (frame["saliency"] == 0), "correct"] = 1
    lost = contrasts.Contrast("saliency", "none", ("std_correct",))
    assert np.isnan(contrasts.estimate(nested.analyze(frame).largest, [lost])["p"].iloc[0])
    found = outcomes.run_contrasts(frame, NESTED["interaction"], nested.RANDOM, [lost])
    assert found.to_dict("list") == {"contrast": ["saliency - none, std_correct"], "p_holm": [1.0]}


def test_curves_that_are_equal_are_drawn_side_by_side() -> None:
    """Catches a curve at 100% that the next one covers: their points were in the same places."""
    rows = [(n, e, t, 1.0, 0.9, 1.0) for n in (10, 50) for e in (1.0, 0.5) for t in ("a - b", "b - c")]
    drawn = power.figure(pd.DataFrame(rows, columns=["per_condition", "effect", "test", "power", "low", "high"]))
    first = sorted(float(line.x[0]) for line in drawn.data)
    assert min(np.diff(first)) > 0.3
    assert sum(first) / 4 == pytest.approx(10)
    assert [line.line.dash for line in drawn.data] == ["solid", "solid", "dash", "dash"]


def test_simulated_studies_have_the_covariates_of_their_trials() -> None:
    """Catches values of other trials, or not in standard deviations, and one order of trials for all.

    Bayesian learners respond to the examples' gain where they see examples, so that their interaction is certain.
    """
    shown = list(trials().values())
    plain = truths.Theories({"bayesian_learner": 1.0}, shown)
    world = replace(plain, covariates=("gain", "position"))
    frame = world.study(8, np.random.default_rng(3))
    pd.testing.assert_frame_equal(frame.drop(columns=["gain", "position"]), plain.study(8, np.random.default_rng(3)))
    raw = np.array([trial.teaching.gain for trial in shown], dtype=np.float64)[frame["item"].cat.codes]
    np.testing.assert_allclose(frame["gain"], (raw - raw.mean()) / raw.std(ddof=1))
    orders = frame.groupby("participant", observed=True)["position"].apply(lambda own: tuple(own.rank()))
    assert {tuple(sorted(order)) for order in orders} == {tuple(range(1, len(shown) + 1))}
    assert len(set(orders)) == len(orders)
    models = {"without": "trial_type + examples + gain", "with": "trial_type + examples * gain"}
    (test,), _, _ = outcomes.run_tests(frame, models, "chi_square")
    assert test.p is not None
    assert test.p < 1e-6
