"""Covariates of a plan's models: joined, standardised, planned contrasts at their mean, and refused where absent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from scipy.special import expit

from core.errors import ForetellError
from study.analysis.exploratory.analysis import AnalysedStudy, compute
from study.analysis.models import mixed
from study.analysis.planned import analysis as planned
from study.analysis.planned import covariates
from study.analysis.report.manuscript.method import write_method
from study.analysis.responses import reading as responses
from study.bundle import Bundle
from study.plan.covariates import COVARIATES, check_trials
from study.plan.preregistration import AnalysisPlan
from tests.conftest import MakeBundle
from tests.study.analysis.simulated import TYPES, study

RANDOM = "(ai_probability || participant) + (1 | category) + (saliency || item)"
PLAN = AnalysisPlan(
    models={
        "explanation": f"trial_type + saliency + ai_probability + {RANDOM}",
        "moderation": f"trial_type + saliency * ai_probability + {RANDOM}",
    },
    contrasts=({"more": "saliency"},),
    exclusions={"fewest_responses": 5},
)


def simulate(seed: int, moderation: float, people: int = 60, spread: float = 0.0) -> pd.DataFrame:
    """Participants who follow saliency maps more, the more confident the AI was: `moderation` log-odds a unit.

    Each is more or less often right the more confident the AI was, whatever is shown, with an SD of `spread`.
    """
    rng = np.random.default_rng(seed)
    items = pd.DataFrame({"item": [f"i{k}" for k in range(24)], "category": [f"c{k % 6}" for k in range(24)]})
    items = items.assign(trial_type=[TYPES[k % 3] for k in range(24)], ai_probability=rng.uniform(0.4, 1.0, 24))
    frame = items.merge(pd.DataFrame({"participant": [f"p{k:02d}" for k in range(people)]}), how="cross")
    saliency = frame["participant"].str[1:].astype(int) % 2
    own = pd.Series(rng.normal(0, 0.5, people), [f"p{k:02d}" for k in range(people)])
    slope = pd.Series(rng.normal(0, spread, people), own.index)[frame["participant"]].to_numpy()
    eta = 0.4 * saliency + own[frame["participant"]].to_numpy() + slope * (frame["ai_probability"] - 0.7)
    eta += moderation * saliency * (frame["ai_probability"] - 0.7) + 0.5 * (frame["trial_type"] == "std_correct")
    correct = (rng.random(len(frame)) < expit(eta)).astype(int)
    frame = frame.assign(saliency=saliency, examples=0, correct=correct)
    return frame.assign(trial=frame.groupby("participant").cumcount() + 1)


def test_a_planted_moderation_is_recovered_in_sds() -> None:
    """Catches a covariate of other images, one that is not standardised, and contrasts away from its mean.

    Expected: the coefficient that was planted times the SD (1.96 SE), and the same fit to a column made here by hand.
    """
    frame = simulate(3, moderation=6.0, people=120)
    done = planned.execute(responses.prepare(frame), PLAN)
    interaction = done.analysis.largest.coefficients[-1]
    sd = frame["ai_probability"].std()
    assert interaction.term == "saliency:ai_probability"
    assert interaction.se is not None
    assert abs(interaction.estimate - 6.0 * sd) < 1.96 * interaction.se
    by_hand = frame.assign(z=(frame["ai_probability"] - frame["ai_probability"].mean()) / sd)
    model = mixed.fit(
        by_hand, f"correct ~ trial_type + saliency * z + {done.analysis.random.replace('ai_probability', 'z')}"
    )
    saliency = next(c for c in model.coefficients if c.term == "saliency")
    assert done.contrasts["estimate"].iloc[0] == pytest.approx(saliency.estimate, abs=1e-4)
    assert done.analysis.tests[0].decisive_p < 1e-6
    said = next(one for one in done.data.messages if "ai_probability" in one)
    assert f"({sd:.3f}) from its mean ({frame['ai_probability'].mean():.3f})" in said


def test_a_test_of_moderation_keeps_its_alpha() -> None:
    """Catches the slope of the covariate by participant lost, which takes differences of people for moderation.

    16 studies without moderation, whose people differ: p under 0.05 in at most 4 (binomial, .999).
    """
    ps = [
        planned.execute(responses.prepare(simulate(100 + k, 0.0, people=24, spread=12.0)), PLAN).analysis.tests[0]
        for k in range(16)
    ]
    assert sum(test.decisive_p < 0.05 for test in ps) <= 4


def test_what_is_excluded_counts_for_no_mean() -> None:
    """Catches a mean over responses that are not analysed: a participant with four of them is left out."""
    frame = simulate(5, 1.0, people=20)
    surest = frame["ai_probability"] >= np.sort(frame["ai_probability"].unique())[-4]
    some = frame[(frame["participant"] != "p00") | surest]
    assert (some["participant"] == "p00").sum() == 4
    kept = planned.keep(responses.prepare(some), PLAN)
    assert "p00" not in set(kept.data.frame["participant"])
    for part in (kept.data.frame, kept.given.frame):
        assert part["ai_probability"].mean() == pytest.approx(0, abs=1e-12)
        assert part["ai_probability"].std() == pytest.approx(1)


def test_the_position_is_that_of_the_responses_and_the_trial_stays() -> None:
    """Catches the column of trials replaced by its standardised values: other analyses read it."""
    data = covariates.attach(responses.prepare(simulate(6, 0.0, people=10)), ("position",))
    made = covariates.standardise(data, ("position",)).frame
    assert set(made["trial"]) == set(range(1, 25))
    assert np.corrcoef(made["trial"], made["position"])[0, 1] == pytest.approx(1)
    assert made["position"].max() == pytest.approx(11.5 / np.std(np.tile(np.arange(24), 10), ddof=1))


def test_without_a_covariate_the_rows_have_the_hash_they_had() -> None:
    """Catches covariates among the rows of a plan that names none: reports would no longer name the same data."""
    frame = simulate(7, 0.0, people=8)
    plain, known = responses.prepare(frame.drop(columns="ai_probability")), responses.prepare(frame)
    assert plain.sha256 == known.sha256
    assert planned.keep(known, AnalysisPlan()).data.sha256 == plain.sha256


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.drop(columns="ai_probability"), "the responses have no column 'ai_probability'"),
        (lambda f: f.drop(columns="item"), "the responses have no column 'ai_probability'"),
        (lambda f: f.assign(ai_probability=f["ai_probability"].where(f["item"] != "i3")), "have no number there"),
        (lambda f: f.assign(ai_probability="high"), "have no number there"),
        (lambda f: f.assign(ai_probability=0.9), "every response has the same"),
        (lambda f: f.assign(ai_probability=np.arange(len(f)) / len(f)), "differs between the rows of item"),
    ],
)
def test_what_is_not_there_is_said(change, said: str) -> None:  # type: ignore[no-untyped-def]
    """Catches a plan that is analysed without what it names, or by a column that means something else."""
    with pytest.raises(ForetellError, match=said):
        planned.execute(responses.prepare(change(simulate(8, 0.0, people=8))), PLAN)


def test_a_plan_names_its_covariates_and_no_others() -> None:
    """Catches a misspelt covariate that is accepted, and one without the slope that its test needs."""
    assert PLAN.covariates == ("ai_probability",)
    assert AnalysisPlan().covariates == ()
    with pytest.raises(ValidationError, match="the covariates p_learner, gain, insertion"):
        AnalysisPlan(models={"a": "trial_type + ai_confidence"})
    with pytest.raises(ValidationError, match="random effects of the model a may be slopes of trial_type"):
        AnalysisPlan(models={"a": "trial_type + gain + (gain + rt_ms | participant) + (1 | category)"})
    for random in ("", " + (1 | participant) + (1 | category)", " + (trial_type || participant) + (gain | category)"):
        with pytest.raises(ValidationError, match="the models name gain, in whose effect participants may differ"):
            AnalysisPlan(models={"a": f"trial_type * gain{random}"})


def test_a_study_without_the_measure_is_not_frozen(bundle: MakeBundle) -> None:
    """Catches a study whose planned analysis cannot be made: found out after the last participant."""
    trials = Bundle(bundle()).manifest.trials
    check_trials(["position"], trials)
    with pytest.raises(ForetellError, match="names relevance"):
        check_trials(["relevance"], [trial.model_copy(update={"relevance": None}) for trial in trials])
    with pytest.raises(ForetellError, match=f"all {len(trials)} trials have the same"):
        check_trials(["ai_probability"], [trial.model_copy(update={"ai_probability": 0.5}) for trial in trials])


@pytest.mark.parametrize("name", ["leave_out_images", "specifications", "checks", "slopes", "crosschecks"])
def test_robustness_checks_go_on(name: str) -> None:
    """Catches a check that fits the models to rows without the covariate."""
    done = planned.execute(responses.prepare(simulate(9, 4.0, people=16)), PLAN)
    made = compute(name, AnalysedStudy(done.data, models=done.analysis, plan=done))
    assert len(made.table)


def test_the_manuscript_says_what_the_covariates_are() -> None:
    """Catches a methods section that leaves readers to guess what one unit of a coefficient is."""
    done = planned.execute(responses.prepare(simulate(9, 4.0, people=16)), PLAN)
    said = write_method(done.analysis, done.data, done, None, 0.05)["Analysis"]
    assert f"ai_probability ({COVARIATES['ai_probability']})" in said
    assert "standardised" in said
    plain = planned.execute(responses.prepare(study(12, 4, 4, seed=2)), AnalysisPlan())
    assert "standardised" not in write_method(plain.analysis, plain.data, replace(plain), None, 0.05)["Analysis"]
