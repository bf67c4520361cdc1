"""The planned analysis of ratings: ordinal models of the level, their contrasts, and a report without accuracy."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import norm, t

from core.errors import ForetellError
from study.analysis.exploratory.analysis import AnalysedStudy, explain_unscored, list_analyses
from study.analysis.models import levels, mixed
from study.analysis.planned import analysis as planned
from study.analysis.planned import contrasts, stopping
from study.analysis.planned.analysis import PlannedAnalysis
from study.analysis.planned.contrasts import Contrast
from study.analysis.report import results
from study.analysis.responses import ratings, reading
from study.plan.preregistration import AnalysisPlan, PlannedContrast
from tests.study.analysis import rscript

RANDOM = "(1|participant) + (1|category)"
PLAN = AnalysisPlan(
    models={
        "null": f"trial_type + {RANDOM}",
        "explanation": f"trial_type + saliency + {RANDOM}",
        "interaction": f"trial_type * saliency + {RANDOM}",
    },
    tests="chi_square",
    contrasts=tuple(PlannedContrast(more="saliency", trial_types=(kind,)) for kind in ("std_incorrect", "std_correct")),
    prior_sd=0.5,
)
EFFECT = 1.8
"""Log-odds that the planted heatmaps add to each latent rating."""


@cache
def simulate(seed: int = 1) -> pd.DataFrame:
    """Simulate ratings: normal participants and categories, thresholds -1.5 to 1.5, and an effect of heatmaps."""
    rng, rows = np.random.default_rng(seed), []
    of_category = rng.normal(0, 0.4, 6)
    for person in range(40):
        own, shown = rng.normal(0, 0.8), person % 2
        for category in range(6):
            for kind, shift in (("std_incorrect", -0.5), ("std_correct", 1.0)):
                latent = own + of_category[category] + shift + EFFECT * shown + rng.logistic()
                level = 1 + int(np.searchsorted([-1.5, -0.5, 0.5, 1.5], latent))
                rows.append((f"p{person}", f"c{category}", kind, shown, 0, level, "rating"))
    columns = ["participant", "category", "trial_type", "saliency", "examples", "level", "task"]
    return pd.DataFrame(rows, columns=columns)


@cache
def analyse() -> PlannedAnalysis:
    return planned.execute(reading.prepare(simulate()), PLAN)


@rscript.needed("ordinal")
def test_planned_models_are_those_of_clmm(tmp_path: Path) -> None:
    """Catches a planned model of another outcome or family, and a test of the wrong models.

    Oracle: R's ordinal::clmm on the analysed rows, and the engine called with the formula by hand.
    """
    done = analyse()
    assert list(done.analysis.models) == ["null", "explanation", "interaction"]
    direct = mixed.fit(done.data.frame, f"level ~ trial_type * saliency + {RANDOM}", family="ordinal")
    assert done.analysis.largest.loglik == pytest.approx(direct.loglik, abs=1e-6)
    frame = done.data.frame[["participant", "category", "trial_type", "saliency", "level"]]
    fits = "; ".join(
        f"{name} <- clmm(factor(level) ~ {terms} + (1|participant) + (1|category), data)"
        for name, terms in (("a", "trial_type"), ("b", "trial_type + saliency"), ("c", "trial_type * saliency"))
    )
    said = (
        "out <- list(loglik = number(c(a$logLik, b$logLik, c$logLik)), beta = number(c$beta), "
        "alpha = number(c$alpha), se = number(sqrt(diag(vcov(c)))[1:7]))"
    )
    theirs = rscript.run(frame, "ordinal", f"{fits}; {said}", tmp_path)
    fitted = list(done.analysis.models.values())
    np.testing.assert_allclose([one.loglik for one in fitted], theirs["loglik"], atol=1e-3)
    np.testing.assert_allclose([c.estimate for c in fitted[-1].coefficients], theirs["beta"], atol=1e-3)
    np.testing.assert_allclose([c.estimate for c in fitted[-1].thresholds], theirs["alpha"], atol=1e-3)
    errors = [c.se for c in (*fitted[-1].thresholds, *fitted[-1].coefficients)]
    np.testing.assert_allclose(errors, theirs["se"], rtol=1e-2)
    chisq = 2 * np.diff(theirs["loglik"])
    np.testing.assert_allclose([test.chisq for test in done.analysis.tests], chisq, atol=2e-3)


def test_a_planted_effect_has_its_sign_and_scale() -> None:
    """Catches an odds ratio upside down, and levels counted from the wrong end; the truth is known.

    One study says nothing about bias or coverage; that the estimates are those of `ordinal::clmm` is tested above.
    """
    table = analyse().contrasts
    assert ((np.log(table["odds_ratio"]) - EFFECT).abs() < 4 * table["se"]).all()
    assert (np.log(table["odds_ratio"]) > 0).all()
    assert (table["level_difference"] > 0.4).all()
    observed = simulate().groupby(["trial_type", "saliency"])["level"].mean().unstack()
    differences = (observed[1] - observed[0]).reindex(["std_incorrect", "std_correct"])
    np.testing.assert_allclose(table["level_difference"], differences, atol=0.1)


def test_mean_levels_and_their_errors_are_those_of_the_definition() -> None:
    """Catches random effects that are not averaged over, and errors that leave out the thresholds.

    By definition: the mean of 400,001 quantile draws of the random effects, and central differences of it in each
    coefficient and threshold.
    """
    model = analyse().analysis.largest
    cells = pd.DataFrame({"trial_type": ["std_incorrect", "std_correct"], "saliency": [0, 1]})
    mean, gradient = levels.predict(cells, model)
    sd = np.sqrt(sum(effect.sd**2 for effect in model.random))
    drawn = sd * norm.ppf((np.arange(400_001) + 0.5) / 400_001)
    design, cuts = model.design(cells), np.array([c.estimate for c in model.thresholds])
    values = np.array([c.estimate for c in model.coefficients])

    def average(beta: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        eta = design @ beta
        return 1 + np.array([sum(expit(one + drawn - cut).mean() for cut in thresholds) for one in eta])

    np.testing.assert_allclose(mean, average(values, cuts), atol=1e-4)
    step, whole = 1e-4, np.concatenate([values, cuts])
    for k, shift in enumerate(np.eye(len(whole)) * step):
        up, down = (average(*np.split(whole + sign * shift, [len(values)])) for sign in (1, -1))
        np.testing.assert_allclose(gradient[:, k], (up - down) / (2 * step), atol=1e-3)
    joint = model.joint_covariance
    np.testing.assert_allclose(joint[: len(values), : len(values)], model.covariance)
    np.testing.assert_allclose(np.sqrt(np.diag(joint))[len(values) :], [c.se for c in model.thresholds])
    np.testing.assert_allclose(
        levels.compute_standard_errors(gradient, model) ** 2, np.diag(gradient @ joint @ gradient.T)
    )


def test_intervals_of_mean_levels_are_those_of_participants_means() -> None:
    """With as many responses of each participant, the interval is Student's of their means. Catches n for the degrees
    of freedom, and an interval beyond the scale."""
    frame = reading.prepare(simulate()).frame
    made = ratings.tabulate_ratings(frame, 5).set_index(["condition", "trial_type"])
    for (condition, kind), own in frame.groupby(["condition", "trial_type"], observed=True):
        means = own.groupby("participant")["level"].mean()
        half = t.ppf(0.975, len(means) - 1) * means.std() / np.sqrt(len(means))
        row = made.loc[(condition, kind)]
        assert (row["mean_level"], row["low"]) == pytest.approx((means.mean(), means.mean() - half))
        assert row["high"] == pytest.approx(min(means.mean() + half, 5))


def test_a_report_of_ratings_says_levels_and_nothing_about_correct_responses(tmp_path: Path) -> None:
    """Catches accuracy or `correct` in a file of results, an empty sentence, and analyses of correct responses."""
    said = results.write(reading.prepare(simulate()), tmp_path, plan=PLAN)
    assert re.match(
        r"With saliency maps participants rated \d\.\d\d levels higher than with no explanation where the AI was \w+.* "
        r"\(mean level \d\.\d\d vs \d\.\d\d; 95% CI \d\.\d\d to \d\.\d\d of the difference\)\.",
        said.sentences[0],
    )
    assert "explanations change how highly participants rate" in said.verdicts[0].text
    for name in ("rows.csv", "figure1.csv", "contrasts.csv", "table1.csv", "models.csv", "bayes_factors.csv"):
        header = (tmp_path / name).read_text(encoding="utf-8").split("\n")[0]
        assert not {"correct", "accuracy", "points"} & {*re.split(r"[,_]", header)}, name
    text = (tmp_path / "report.md").read_text(encoding="utf-8").replace(explain_unscored(said.data.task), "")
    manuscript = (tmp_path / "manuscript.md").read_text(encoding="utf-8")
    assert not re.search("accurac|percentage point|was correct|Logistic|logistic|chance", text + manuscript)
    assert "cumulative-logit mixed models" in manuscript
    assert "library(ordinal)" in (tmp_path / "analysis.R").read_text(encoding="utf-8")
    assert "level ~" in json.dumps(json.loads((tmp_path / "models.json").read_text())) or "threshold" in text
    offered = list_analyses(AnalysedStudy(said.data, models=said.analysis))
    assert {*offered} == {"levels", "ordinal", "proportional_odds"}


def test_files_of_ratings_that_cannot_be_analysed_are_refused_in_words() -> None:
    """Catches a level off the scale, one that never varies, responses to two tasks, and an exclusion by accuracy."""
    frame = simulate()
    with pytest.raises(ForetellError, match=r"numbers from 1 to 5, but row 3 says '6': correct it.*needs the column"):
        reading.prepare(frame.assign(level=frame["level"].where(frame.index != 2, 6)))
    assert reading.prepare(frame.assign(level=frame["level"] + 2, n_levels=7)).task.count == 7
    with pytest.raises(ForetellError, match="every response is 3, so there is nothing to model"):
        reading.prepare(frame.assign(level=3))
    with pytest.raises(ForetellError, match=r"names several tasks \(rating, predict\)"):
        reading.prepare(frame.assign(task=frame["task"].where(frame.index < 9, "predict")))
    with pytest.raises(ForetellError, match="Column 'level' is missing"):
        reading.prepare(frame.drop(columns="level"))
    plan = PLAN.model_copy(update={"exclusions": PLAN.exclusions.model_copy(update={"least_accuracy": 0.5})})
    with pytest.raises(ForetellError, match="excludes 'accuracy below 50% where the AI is right', but the responses"):
        planned.keep(reading.prepare(frame), plan)
    bounded = replace(analyse(), plan=AnalysisPlan(equivalence=5))
    assert bounded.equivalence is None


def place_in_conditions() -> pd.DataFrame:
    """Ratings of `simulate`, and 20 participants more who saw random maps and rate as without an explanation."""
    frame, others = simulate(), simulate(2)
    names = {0: "none", 1: "saliency"}
    misled = others[others["saliency"] == 0].assign(saliency=1, condition="random_maps")
    misled["participant"] = "random " + misled["participant"]
    return pd.concat([frame.assign(condition=frame["saliency"].map(names)), misled], ignore_index=True)


def test_ratings_with_true_maps_are_compared_with_those_of_random_maps() -> None:
    """Catches placebos compared by a logistic model, and their rows in the planned models.

    Expected: the difference of the observed mean levels; and maps add `EFFECT` in this world, random ones nothing.
    """
    frame = place_in_conditions()
    asked = tuple(
        PlannedContrast(more=more, less=less, trial_types=("std_correct",))
        for more, less in (("saliency", "random_maps"), ("random_maps", "none"))
    )
    done = planned.execute(reading.prepare(frame), PLAN.model_copy(update={"contrasts": asked}))
    seen = frame[frame["trial_type"] == "std_correct"].groupby("condition")["level"].mean()
    assert done.analysis.largest.n == len(simulate())
    true, placebo = done.contrasts.to_dict("records")
    assert true["level_difference"] == pytest.approx(seen["saliency"] - seen["random_maps"], abs=0.1)
    assert placebo["level_difference"] == pytest.approx(seen["random_maps"] - seen["none"], abs=0.1)
    assert true["p_holm"] < 0.001
    assert true["estimate"] == pytest.approx(EFFECT, abs=3 * true["se"])
    assert placebo["estimate"] == pytest.approx(0, abs=3 * placebo["se"])


def test_an_interim_analysis_of_ratings_is_of_the_ordinal_model() -> None:
    """Catches a look that needs `correct`, or at others than those who finished first. Oracle: a table cut by hand."""
    frame = simulate()
    number = frame["participant"].str[1:].astype(int)
    answers = frame.assign(
        condition=frame["saliency"].map({0: "none", 1: "saliency"}),
        correct=None,
        received_at=(pd.Timestamp("2026-01-01") + pd.to_timedelta(number, unit="min")).astype(str),
    )
    stops = {"looks": (10, 20), "contrast": {"more": "saliency", "less": "none"}}
    plan = AnalysisPlan.model_validate({**PLAN.model_dump(), "participants": 20, "stopping": stops})
    look = stopping.run_interim_analysis(answers.sample(frac=1, random_state=1), plan, 1)
    model = mixed.fit(
        reading.prepare(frame[number < 20]).frame, f"level ~ trial_type * saliency + {RANDOM}", family="ordinal"
    )
    by_hand = contrasts.estimate(model, [Contrast("saliency", "none")])
    assert look.z == pytest.approx(by_hand["z"].iloc[0], abs=1e-3)
    assert look.is_crossed
