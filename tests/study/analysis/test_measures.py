"""Belief projection, calibration, learning, items and times on answers whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.exploratory import analysis as exploratory
from study.analysis.exploratory import calibration, items, learning, projection, speed
from study.analysis.exploratory.analysis import EXPLORATORY, AnalysedStudy
from study.analysis.planned import nested
from study.analysis.responses import reading as responses
from study.analysis.responses.notices import MODES
from study.bundle import Bundle
from tests.conftest import write_bundle
from tests.study.analysis.simulated import study


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return responses.prepare(study(40, 10, 20, seed=5)).frame


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_figures_of_simulated_participants_say_so() -> None:
    """Catches an exploratory figure that, saved or pasted elsewhere, looks like people's responses."""
    for mode in ("sim", "live"):
        data = responses.prepare(study(40, 10, 20, seed=5).assign(mode=mode))
        drawn = [exploratory.compute(name, AnalysedStudy(data)).figure for name in ("detection", "learning")]
        titles = [figure.layout.title.text for figure in drawn if figure is not None]
        assert titles == [MODES["sim"] if mode == "sim" else None] * 2


def test_projection_of_known_people(frame: pd.DataFrame) -> None:
    # Closed forms: always the truth gives 1, always the AI's answer 1/2, a guesser 1/2.
    ai_right = (frame["trial_type"] == "std_correct").astype(int)
    always = projection.table(frame.assign(correct=ai_right))
    assert always[["index", "high", "ai_right", "ai_wrong"]].eq(1.0).all(axis=None)
    assert always["low"].between(0.5, 0.99).all()  # so few participants: the next one may do otherwise
    oracle = projection.table(frame.assign(correct=1)).iloc[0]
    assert (oracle["index"], oracle["ai_right"], oracle["ai_wrong"]) == (0.5, 1.0, 0.0)
    found = projection.table(frame)
    assert ((found["low"] < found["index"]) & (found["index"] < found["high"])).all()
    assert len(projection.figure(found).data[0].x) == 4
    with pytest.raises(ForetellError, match="lacks one kind"):
        projection.table(frame[ai_right == 1])


def test_calibration_of_known_ratings(frame: pd.DataFrame) -> None:
    # Closed forms: ratings that are the true probabilities have error 0 up to chance, and Brier mean p(1 - p).
    draws = np.random.default_rng(2)
    sure = draws.choice([0.55, 0.75, 0.95], len(frame))
    known = frame.assign(confidence=sure, correct=(draws.random(len(frame)) < sure).astype(int))
    table = calibration.scores(known)
    np.testing.assert_allclose(table["brier"], np.mean(sure * (1 - sure)), atol=0.04)
    assert (table["calibration_error"] < 0.06).all()
    assert (table["overconfidence"].abs() < 0.05).all()
    binned = calibration.bins(known)
    assert ((binned["low"] <= binned["accuracy"]) & (binned["accuracy"] <= binned["high"])).all()
    assert binned["responses"].sum() == len(known)
    boaster = calibration.scores(known.assign(confidence=1.0, correct=known["correct"]))
    np.testing.assert_allclose(boaster["calibration_error"], 1 - boaster["accuracy"])
    np.testing.assert_allclose(boaster["brier"], 1 - boaster["accuracy"])
    assert calibration.figure(binned).data[-1].mode == "lines"
    with pytest.raises(ForetellError, match="no confidence ratings"):
        calibration.bins(frame)


def test_scores_and_deviations_are_offered_where_they_can_be_computed() -> None:
    """Catches tables that only tests reach, scores offered without ratings, and participants named among the levels.
    The deviations are the conditional modes of the fit, which are compared with lme4's elsewhere."""
    data = responses.prepare(study(24, 6, 6, seed=5).assign(confidence=0.7))
    analysis = nested.analyze(data, fixed={"a": "trial_type", "b": "trial_type + saliency"}, tests="chi_square")
    rated = AnalysedStudy(data, models=analysis)
    assert {"calibration_scores", "modes"} <= set(exploratory.list_analyses(rated))
    unrated = AnalysedStudy(replace(data, frame=data.frame.drop(columns="confidence")))
    assert {"calibration_scores", "modes"}.isdisjoint(exploratory.list_analyses(unrated))
    scores = exploratory.compute("calibration_scores", rated).table
    np.testing.assert_allclose(scores["overconfidence"], 0.7 - scores["accuracy"])
    table = exploratory.compute("modes", rated).table
    (block,) = (block for block in analysis.largest.blocks if block.group == "category")
    assert list(table["mode"]) == sorted(block.modes["(Intercept)"])
    assert set(table["group"]) == {"category"}


def test_calibration_intervals_know_that_responses_cluster_in_participants(frame: pd.DataFrame) -> None:
    """Catches intervals as of independent responses: here 20 participants, each always right or always wrong.

    Closed form: the share of 20 participants, a binomial of 20 at one half, has about .3 to .7; 200 independent
    responses would have .43 to .57.
    """
    rows = frame.iloc[:200].assign(
        participant=[f"p{k // 10}" for k in range(200)],
        condition="none",
        correct=[k // 10 % 2 for k in range(200)],
        confidence=0.75,
    )
    found = calibration.bins(rows).iloc[0]
    assert (found["low"], found["high"]) == pytest.approx((0.3, 0.7), abs=0.051)
    assert (found["participants"], found["responses"], found["accuracy"]) == (20, 200, 0.5)
    right = calibration.bins(rows.assign(correct=1)).iloc[0]
    assert right["high"] == 1.0
    assert right["low"] == pytest.approx(20 / (20 + 2.093024**2))  # Wilson's bound of 20 successes of 20, by t of 19
    few = calibration.bins(rows.iloc[:40]).iloc[0]
    assert np.isnan(few["low"])


def test_learning_is_found_where_it_is(frame: pd.DataFrame) -> None:
    draws = np.random.default_rng(4)
    better = frame.assign(correct=(draws.random(len(frame)) < 0.4 + 0.4 * frame["trial"] / 59).astype(int))
    table = learning.table(better)
    assert table.groupby("condition").size().eq(learning.BLOCKS).all()
    ends = table.groupby("condition")["accuracy"].agg(["first", "last"])
    np.testing.assert_allclose(ends["last"] - ends["first"], 0.4 * 5 / 6, atol=0.15)
    assert table["responses"].sum() == len(frame)
    assert len(learning.figure(table).data) == 4
    with pytest.raises(ForetellError, match="no column 'trial'"):
        learning.table(frame.drop(columns="trial"))


def test_items_against_scores(frame: pd.DataFrame) -> None:
    table = items.table(frame)
    first = table.iloc[0]
    cell = frame[(frame["category"] == first["category"]) & (frame["trial_type"] == first["trial_type"])]
    assert (first["responses"], first["accuracy"]) == (len(cell), cell["correct"].mean())
    assert table["accuracy"].is_monotonic_increasing
    share = frame.groupby("category")["correct"].mean()
    scores = pd.DataFrame({"category": share.index, "deletion": -share.to_numpy()})
    joined = items.against(frame, scores, "deletion")
    assert joined["responses"].sum() == len(frame)
    rho = items.association(joined, "deletion")
    cells = joined[["condition", "trial_type"]].drop_duplicates()
    assert rho[["condition", "trial_type"]].values.tolist() == cells.values.tolist()
    one = items.association(joined.assign(accuracy=-joined["deletion"]), "deletion")
    np.testing.assert_allclose(one["rho"], -1.0)
    assert sum(len(trace.x) for trace in items.figure(joined, "deletion").data) == len(joined)
    with pytest.raises(ForetellError, match="column 'insertion'"):
        items.against(frame, scores, "insertion")
    with pytest.raises(ForetellError, match="'category' of the scores repeats"):
        items.against(frame, pd.concat([scores, scores]), "deletion")
    with pytest.raises(ForetellError, match="no column 'item'"):
        items.table(frame, ("item",))


def test_every_score_of_a_study_beside_its_trials(tmp_path: Path) -> None:
    """The numbers joined by the trial's id, rho by its definition from ranks; catches a join by place."""
    manifest = Bundle(write_bundle(tmp_path, name="demo", trials=12)).manifest
    rng = np.random.default_rng(3)
    drawn = {trial.id: rng.permutation(60)[:2] / 60 for trial in manifest.trials}
    known = tuple(
        trial.model_validate(
            trial.model_dump()
            | {
                "teaching": {"p_learner": drawn[trial.id][0], "policy": "best"},
                "saliency": {"deletion": drawn[trial.id][1], "samples": 256, "seed": int(1e9 * drawn[trial.id][0])},
            }
        )
        for trial in manifest.trials
    )
    scores = items.tabulate_scores(known[::-1])
    assert list(scores) == ["item", "p_learner", "deletion"]  # what is the same in all, and seeds, are no scores
    answered = rng.permutation([trial.id for trial in manifest.trials for _ in range(50)])
    frame = pd.DataFrame({"item": answered, "condition": "both", "trial_type": "std_correct"})
    frame["correct"] = (rng.random(len(frame)) < [drawn[item][0] for item in answered]).astype(int)
    table = items.associations(frame, scores).set_index("score")
    share = frame.groupby("item")["correct"].mean()
    for name, k in (("p_learner", 0), ("deletion", 1)):
        other = pd.Series({item: numbers[k] for item, numbers in drawn.items()})[share.index]
        rho = np.corrcoef(share.rank(), other.rank())[0, 1]
        assert table.loc[items.SCORES[name], "rho"] == pytest.approx(rho)
    assert table.loc[items.SCORES["p_learner"], "rho"] > 0.8
    assert (table["p_holm"] >= table["p"]).all()
    with pytest.raises(ForetellError, match="do not differ in any number"):
        items.associations(frame, scores[["item"]])
    easy = frame["item"].map(scores.set_index("item")["p_learner"]) > 0.5
    confounded = frame.assign(trial_type=np.where(easy, "std_correct", "adv_incorrect"), correct=easy.astype(int))
    apart = items.associations(confounded, scores)
    assert apart["rho"].isna().all()  # right or wrong by the type alone: the scores say nothing beyond it
    flat = items.association(items.against(frame.assign(correct=1), scores, "deletion"), "deletion")
    assert flat[["rho", "p"]].isna().all(axis=None)  # no correlation with what never varies, and no warning


def test_times_are_averaged_over_people(frame: pd.DataFrame) -> None:
    # A slow person with many answers must count as one: pooled quantiles would not.
    times = np.where(frame["participant"] == "p0", 9000.0, 1000.0) + frame["trial"]
    table = speed.table(frame.assign(rt_ms=times, condition="none", trial_type="std_correct", correct=1))
    (row,) = table.to_dict("records")
    median = np.median(np.arange(60))
    assert row["q50"] == pytest.approx(1000 + median + 8000 / 40)
    assert row["q10"] < row["q25"] < row["q50"] < row["q75"] < row["q90"]
    drawn = speed.figure(speed.table(frame.assign(rt_ms=times)))
    assert drawn.layout.yaxis.type == "log"
    with pytest.raises(ForetellError, match="no response times"):
        speed.table(frame)


def test_every_property_of_a_trial_has_its_analysis() -> None:
    """Catches a property that no line of the registry plots, and one that is plotted under the name of another."""
    titles = {name: EXPLORATORY[name].title for name in EXPLORATORY if name.startswith("items_")}
    assert titles == {f"items_{name}": f"Trials by {words}" for name, words in items.SCORES.items()}
