"""Which slopes a design supports, what a model leaves out, and the rule that reduces a singular fit."""

from __future__ import annotations

import numpy as np
import pytest

from study.analysis.models import mixed, random_effects
from study.analysis.planned import nested
from study.analysis.power.truths import TABLE_1, AdditiveTruth
from study.analysis.responses import reading as responses
from study.bundle import TRIAL_TYPES
from study.plan.preregistration import NESTED
from tests.study.analysis.simulated import analyze_as_in_the_paper

SLOPES = "(trial_type|participant) + (saliency + examples|category)"
DEFAULT = "(trial_type||participant) + (saliency + examples||category) + (saliency + examples||item)"


def study(seed: int = 0, *, items: bool = True, **world: float):
    """A study of 48 participants and 12 categories without any effect of explanations."""
    truth = AdditiveTruth({"": TABLE_1[""]}, categories=12, **world)
    frame = truth.study(12, np.random.default_rng(seed))
    named = frame.assign(item=frame["category"].astype(str) + " " + frame["trial_type"].astype(str)) if items else frame
    return responses.prepare(named).frame


def test_the_design_says_which_slopes_its_tests_need() -> None:
    # By the definition: explanations are between participants, everything is within categories, types between images.
    frame = study()
    assert random_effects.find_needed_slopes(frame) == {
        "participant": ("trial_type",),
        "category": ("saliency", "examples"),
        "item": ("saliency", "examples"),
    }
    said = random_effects.omission(frame, random_effects.INTERCEPTS)
    assert said is not None
    assert (
        "of trial type by participant; of saliency and examples by category; of saliency and examples by image" in said
    )
    assert random_effects.omission(frame, random_effects.sensible(frame)) is None
    nested_types = "(1|participant) + (1|participant:trial_type)"
    assert random_effects.find_omitted_slopes(frame, nested_types)["participant"] == ()
    assert random_effects.sensible(frame) == (
        "(trial_type||participant) + (saliency + examples||category) + (saliency + examples||item)"
    )


def test_explanations_within_participants_differ_between_them_too() -> None:
    """Catches an upload of a within-participants study that takes participants' own effects for sampling error."""
    frame = study()
    half = frame["item"].map({name: k % 2 for k, name in enumerate(sorted(frame["item"].unique()))})
    within = frame.assign(saliency=(half + frame["participant"].str.len()) % 2)
    assert random_effects.find_needed_slopes(within)["participant"] == ("trial_type", "saliency")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: f.drop(columns="item"), "the responses have no column item"),
        (lambda f: f.assign(item=f["item"].where(f.index > 0)), "the column item has missing values"),
        (lambda f: f.assign(item=[f"i{k}" for k in range(len(f))]), "no image has two responses"),
        (lambda f: f.assign(item="x " + f["category"].astype(str)), "each category has one image"),
    ],
)
def test_images_that_cannot_be_told_apart_are_left_out_and_said(change, reason: str) -> None:
    """Catches a default model that cannot be fitted without images, and one that leaves them out in silence."""
    frame = change(study())
    random, said = random_effects.restrict(frame, DEFAULT)
    assert random == "(trial_type||participant) + (saliency + examples||category)"
    (sentence,) = said
    assert reason in sentence
    assert "item" not in random_effects.find_needed_slopes(frame)


def test_slopes_of_what_does_not_vary_are_left_out() -> None:
    """Catches a column of zeros among the random effects, whose standard deviation nothing determines."""
    frame = study()
    assert random_effects.restrict(frame, DEFAULT) == (DEFAULT, ())
    without = frame[frame["examples"] == 0]
    random, said = random_effects.restrict(without, DEFAULT)
    assert random == "(trial_type||participant) + (saliency||category) + (saliency||item)"
    assert said == ()
    apart = frame.assign(item=frame["item"] + frame["saliency"].astype(str))
    random, (sentence,) = random_effects.restrict(apart, DEFAULT)
    assert random.endswith("(examples||item)")
    assert "no slopes of saliency by image" in sentence


def test_a_plan_names_the_slopes_that_its_data_will_support() -> None:
    """Catches a plan that is warned of other slopes than its results, or of explanations that no condition shows."""
    trials = [(f"c{number}", kind) for number in range(12) for kind in TRIAL_TYPES]
    conditions = ("none", "saliency", "examples", "both", "random_maps")
    said = random_effects.planned_omission(NESTED, conditions, trials)
    assert said is not None
    later = random_effects.omission(study(), random_effects.INTERCEPTS)
    assert later is not None
    slopes = later.split(": ")[1].split(". ")[0]
    assert f"in the study file) leave out random slopes that the design supports ({slopes})" in said
    few = random_effects.planned_omission(NESTED, ("none", "saliency"), trials)
    assert few is not None
    assert "(of trial type by participant; of saliency by category; of saliency by image)" in few
    assert random_effects.planned_omission({"all": f"trial_type + {DEFAULT}"}, conditions, trials) is None


def test_a_singular_fit_is_reduced_in_the_stated_order() -> None:
    # Without any slopes in the world, the correlated fit of so few categories is singular.
    analysis = nested.analyze(study(seed=3), random=SLOPES)
    assert analysis.reduced_from == SLOPES
    assert "||" in analysis.random or "trial_type" not in analysis.random
    formulas = {model.formula.split("+ (", 1)[1] for model in analysis.models.values()}
    assert len(formulas) == 1  # all models have the same random effects
    assert random_effects.simpler(analysis.random, analysis.largest.effects) is None


@pytest.mark.parametrize(
    ("random", "effects", "then"),
    [
        ("(1|participant)", [("participant", ["(Intercept)"], [[0.0]])], None),
        (
            "(trial_type|participant)",
            [("participant", ["(Intercept)", "trial_typestd_incorrect"], [[1.0, 1.0], [1.0, 1.0]])],
            "(trial_type||participant)",
        ),
        (
            "(saliency + examples||category)",
            [
                ("category", ["(Intercept)"], [[0.5]]),
                ("category", ["saliency"], [[0.0]]),
                ("category", ["examples"], [[0.2]]),
            ],
            "(examples||category)",
        ),
        (
            "(trial_type||participant)",
            [
                ("participant", ["(Intercept)"], [[0.5]]),
                ("participant", ["trial_typestd_incorrect"], [[0.0]]),
                ("participant", ["trial_typestd_correct"], [[0.2]]),
            ],
            None,
        ),
        ("(saliency||category)", [("category", ["(Intercept)"], [[0.5]]), ("category", ["saliency"], [[0.1]])], None),
    ],
)
def test_each_step_of_the_rule(random: str, effects: list, then: str | None) -> None:
    given = [(group, names, np.array(covariance)) for group, names, covariance in effects]
    assert random_effects.simpler(random, given) == then


def test_a_standard_deviation_of_0_that_the_rule_leaves_changes_no_likelihood() -> None:
    """The rule said that a singular fit is reduced until it is not, also where a factor's slope keeps a level at 0."""
    frame = study(seed=3)
    frame["right"] = (frame["trial_type"] == "std_correct").astype(float)
    kept = mixed.fit(frame, "correct ~ trial_type + (trial_type||participant)")
    assert min(effect.sd for effect in kept.random) < 1e-4 < max(effect.sd for effect in kept.random[1:])
    without = mixed.fit(frame, "correct ~ trial_type + (right||participant)")
    assert kept.loglik == pytest.approx(without.loglik, abs=1e-4)
    assert "the slope of a factor while one of its levels has a standard deviation above 0" in random_effects.RULE


def test_slopes_stop_the_false_alarms_of_a_world_where_participants_differ() -> None:
    """Catches slopes that are planned but not fitted: p with them is larger wherever participants differ this much."""
    frame = study(seed=7, person_slope_sd=1.5)
    plain = analyze_as_in_the_paper(frame).tests[1]
    slopes = nested.analyze(frame, random="(trial_type||participant) + (1|category)").tests[1]
    assert plain.df == slopes.df == 7
    assert slopes.chisq < 0.7 * plain.chisq


def test_the_model_of_conditions_has_slopes_of_conditions_alone() -> None:
    """Catches a covariate's slope that becomes one of the condition, which the model with placebos then has twice."""
    planned = "(trial_type + gain || participant) + (saliency + gain:saliency || item)"
    assert random_effects.by_condition(planned) == "(trial_type||participant) + (condition||item)"
    assert random_effects.by_condition("(gain | participant)") == "(1|participant)"
