"""The diffusion model: the paper's example, walks whose parameters are known, and responses that do not allow it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.exploratory import diffusion
from study.analysis.exploratory.analysis import AnalysedStudy, compute, list_analyses
from study.analysis.responses.reading import prepare
from tests.study.analysis.observers import decide, hurry
from tests.study.analysis.test_metacognition import complete

TRUE = {"none": (1.0, 1.6, 0.4), "saliency": (1.8, 1.6, 0.4)}
"""Drift rate, boundary, non-decision time."""


def test_the_example_of_the_paper() -> None:
    """Catches a wrong equation. The R code of Wagenmakers et al. (2007) prints for an accuracy of .802, a mean of .723
    and a variance of .112 (s) a drift of .09993853, a boundary of .1399702 and .30003 s, for noise of .1."""
    drift, boundary, other = diffusion.compute_parameters(0.802, 0.723, 0.112)
    assert (drift / 10, boundary / 10, other) == pytest.approx((0.09993853, 0.1399702, 0.30003), abs=1e-7)


@pytest.mark.parametrize(("drift", "boundary", "other"), [(1.0, 1.4, 0.3), (-0.7, 2.0, 0.5), (2.5, 1.0, 0.2)])
def test_walks_have_the_parameters_they_were_made_with(drift: float, boundary: float, other: float) -> None:
    """Catches a boundary for its half, or a drift without its sign. Oracle: 20,000 walks, step by step."""
    correct, seconds = decide(np.random.default_rng(1), drift, boundary, other, 20_000)
    own = seconds[correct == 1]
    made = diffusion.compute_parameters(correct.mean(), own.mean(), own.var(ddof=1))
    assert made[:2] == pytest.approx((drift, boundary), rel=0.04)
    assert made[2] == pytest.approx(other, abs=0.03)


def test_a_faster_drift_is_told_from_less_caution() -> None:
    """Catches parameters exchanged: conditions differ in their drift rate alone, and wrong trials have half of it."""
    frame = hurry(2, TRUE, people=30, trials=120)
    table = diffusion.conditions(diffusion.estimate_participants(frame)).set_index(["trials", "condition"])
    for condition, (drift, _, _) in TRUE.items():
        assert table.loc[("AI right", condition), "drift"] == pytest.approx(drift, rel=0.15)
        assert table.loc[("AI wrong", condition), "drift"] == pytest.approx(drift / 2, rel=0.25)
    made = diffusion.differences(diffusion.estimate_participants(frame)).set_index(["trials", "measure"])
    assert made.loc[("AI right", "drift"), "p_holm"] < 0.001
    assert made.loc[("AI right", "boundary"), "p_holm"] > 0.05
    assert made["contrast"].eq("saliency - none").all()


def test_a_mirrored_participant_has_the_same_parameters_but_for_the_sign() -> None:
    """Catches the times of a few correct responses taken where most are incorrect."""
    frame = hurry(6, {"none": (1.2, 1.6, 0.4)}, people=4, trials=60)
    kept = frame[frame["trial_type"] == "std_correct"]
    one = diffusion.estimate_participants(kept)
    other = diffusion.estimate_participants(kept.assign(correct=1 - kept["correct"]))
    np.testing.assert_allclose(other["drift"], -one["drift"])
    np.testing.assert_allclose(other[["boundary", "nondecision_s"]], one[["boundary", "nondecision_s"]])


def test_accuracies_without_a_solution_are_half_a_response_away() -> None:
    """Catches an infinite drift rate where a participant is always right, and none at chance."""
    assert diffusion.correct_edges(20, 20) == pytest.approx(0.975)
    assert diffusion.correct_edges(0, 20) == pytest.approx(0.025)
    assert diffusion.correct_edges(10, 20) == pytest.approx(0.525)
    assert diffusion.correct_edges(11, 20) == pytest.approx(0.55)


def test_who_responded_too_little_is_left_out_and_nobody_is_said() -> None:
    """Catches a variance of one or two times, and a table without rows."""
    frame = hurry(3, TRUE, people=3, trials=40)
    few = frame[(frame["participant"] != "p000") | (frame.groupby("participant").cumcount() < 6)]
    assert "p000" not in set(diffusion.estimate_participants(few)["participant"])
    with pytest.raises(ForetellError, match="No participant has 10 responses with a time"):
        diffusion.conditions(diffusion.estimate_participants(frame.groupby("participant").head(4)))
    with pytest.raises(ForetellError, match="no response times"):
        diffusion.conditions(diffusion.estimate_participants(frame.drop(columns="rt_ms")))


def test_slow_errors_are_said() -> None:
    """Catches a model read where its assumption is plainly wrong, and a warning where it holds."""
    frame = hurry(4, {"none": (1.0, 1.6, 0.4)}, people=30, trials=120)
    assert diffusion.describe_errors(frame) == ""
    slow = frame.assign(rt_ms=frame["rt_ms"] * np.where(frame["correct"] == 0, 1.5, 1.0))
    assert " take 5" in diffusion.describe_errors(slow) or " take 4" in diffusion.describe_errors(slow)
    assert "longer than correct ones" in diffusion.describe_errors(slow)


def test_the_analysis_is_of_two_options_and_drawn() -> None:
    """Catches the model offered for a scale, several classes or two steps, and a figure of another measure."""
    frame = complete(hurry(5, TRUE, people=6, trials=60))
    study = AnalysedStudy(prepare(frame))
    made = compute("diffusion", study)
    assert made.figure is not None
    for trace in made.figure.data:
        np.testing.assert_allclose(list(trace.y), made.table.loc[made.table["trials"] == trace.name, "drift"])
    assert "diffusion" not in list_analyses(AnalysedStudy(prepare(frame.assign(n_classes=4))))
    assert "diffusion" not in list_analyses(AnalysedStudy(prepare(frame.assign(task="reliance", first_choice="a"))))
    assert "diffusion" not in list_analyses(AnalysedStudy(prepare(frame.assign(rt_ms=np.nan))))
    assert isinstance(made.table, pd.DataFrame)
