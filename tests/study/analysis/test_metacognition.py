"""Type 2 AUC and meta-d': other software, brute force, resampled participants, and observers whose noise is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.exploratory import groups, meta_d, metacognition
from study.analysis.exploratory.analysis import AnalysedStudy, compute, list_analyses
from study.analysis.responses.reading import prepare
from tests.study.analysis.observers import rate

METADPY = (
    ([36, 24, 17, 20, 10, 12, 9, 2], [1, 4, 10, 11, 19, 18, 28, 39], 1.504056501139433, 1.460668585557371),
    ([120, 64, 40, 22, 11, 3], [9, 20, 31, 38, 60, 110], 1.8464101221038982, 1.8365271396482212),
    ([31, 28, 30, 33, 14, 13, 17, 11], [10, 12, 15, 9, 30, 26, 35, 29], 1.0852226742765825, 0.0811412460399982),
    ([40, 20, 25, 10, 2, 6], [20, 9, 11, 14, 18, 47], 1.3585674157198722, 0.35441486479481615),
)
"""Counts without and with a signal, from surely no to surely yes; d' and meta-d' of metadpy 0.1.2 (MLE)."""
NOISE = {"none": 0.0, "saliency": 1.0}


def arrange(absent: list[int], present: list[int]) -> np.ndarray:
    """One participant's counts (1, signal, said, rating)."""
    k = len(absent) // 2
    return np.array([[[row[:k][::-1], row[k:]] for row in (absent, present)]], dtype=np.float64)


def complete(frame: pd.DataFrame) -> pd.DataFrame:
    """Responses with the columns that all analyses need."""
    saliency = frame["condition"].isin(["saliency", "both"]).astype(int)
    category = "c" + (frame.groupby("participant").cumcount() % 9).astype(str)
    return frame.assign(saliency=saliency, examples=0, category=category)


@pytest.mark.parametrize(("absent", "present", "dprime", "meta"), METADPY)
def test_the_estimates_are_those_of_other_software(
    absent: list[int], present: list[int], dprime: float, meta: float
) -> None:
    """Catches criteria in the wrong order, a tail of the wrong side, and a type 1 criterion that is not c / d'."""
    made = meta_d.fit(arrange(absent, present))
    assert made.dprime == pytest.approx(dprime, abs=1e-9)
    assert made.meta_d == pytest.approx(meta, abs=1e-5)


def test_errors_are_those_of_resampled_participants() -> None:
    """Catches standard errors that take d' for known, or responses for independent. Oracle: 100 bootstrap samples."""
    frame = metacognition.select_rated(rate(5, {"none": 0.7}, people=40))
    counts = metacognition.count(frame)
    made, rng = meta_d.fit(counts), np.random.default_rng(0)
    drawn = [meta_d.fit(counts[rng.integers(40, size=40)]) for _ in range(100)]
    assert made.meta_d_se == pytest.approx(np.std([one.meta_d for one in drawn]), rel=0.25)
    assert made.efficiency_se == pytest.approx(np.std([one.efficiency for one in drawn]), rel=0.25)


def test_the_auc_is_the_share_of_pairs() -> None:
    """Catches ties that count whole or not at all, and right and wrong exchanged. Expected: every pair, by hand."""
    own = rate(1, {"none": 0.5}, people=1)
    right, wrong = (own.loc[own["correct"] == value, "confidence"].to_numpy() for value in (1, 0))
    pairs = [float(a > b) + 0.5 * float(a == b) for a in right for b in wrong]
    assert metacognition.compute_auc(own) == pytest.approx(np.mean(pairs))
    assert metacognition.compute_auc(own[own["correct"] == 1]) is None
    assert metacognition.compute_auc(own.assign(confidence=0.5)) is None


def test_noise_in_confidence_is_told_from_sensitivity() -> None:
    """Catches measures of the wrong condition: both are as accurate, and only one rates by its evidence."""
    frame = rate(2, NOISE, people=40)
    table = metacognition.conditions(frame).set_index("condition")
    assert table.loc["none", "efficiency_low"] < 1 < table.loc["none", "efficiency_high"]
    assert table.loc["saliency", "efficiency_high"] < 0.85
    made = metacognition.differences(frame).set_index("measure")
    assert (made["p_holm"] < 0.001).all()
    assert made.loc["auc2", "difference"] == pytest.approx(table["auc2"].diff().iloc[1])
    said = groups.conclude(metacognition.differences(frame), 0.05)
    assert said.startswith("Against no explanation: saliency maps, type 2 AUC −0.")
    assert "saliency maps, meta-d' / d' −0." in said


def test_a_difference_is_that_of_welch() -> None:
    """Catches degrees of freedom of the wrong groups. Oracle: scipy.stats.ttest_ind(equal_var=False)."""
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(1)
    few, many = rng.normal(0, 3, 7), rng.normal(1, 1, 30)
    made = groups.compare([({}, {"none": {"m": groups.average(few)}, "both": {"m": groups.average(many)}})], 0.95)
    known = ttest_ind(many, few, equal_var=False)
    assert made["p"].iloc[0] == pytest.approx(known.pvalue)
    assert tuple(made[["low", "high"]].iloc[0]) == pytest.approx(tuple(known.confidence_interval()))


def test_what_is_not_determined_says_why() -> None:
    """Catches an infinite or meaningless meta-d' in the table, and one condition that costs another."""
    frame = rate(3, {"none": 0.5, "saliency": 0.5}, people=8)
    perfect = frame.assign(correct=frame["correct"].where(frame["condition"] == "none", 1))
    table = metacognition.conditions(perfect).set_index("condition")
    assert np.isfinite(table.loc["none", "meta_d"])
    assert np.isnan(table.loc["saliency", ["auc2", "meta_d", "efficiency"]].astype(float)).all()
    said = metacognition.describe_absent(perfect)
    assert said == (
        " Saliency maps: no meta-d', because participants always or never reported an error, so that d' is not finite."
    )
    turned = frame.assign(correct=1 - frame["correct"])
    assert "because d' is not above 0" in metacognition.describe_absent(turned)
    with pytest.raises(ForetellError, match="Every response has the same confidence"):
        metacognition.conditions(frame.assign(confidence=1.0))
    both = pd.concat([frame, frame.assign(condition="examples")])
    with pytest.raises(ForetellError, match="each with participants of its own"):
        metacognition.differences(both)


def test_ratings_of_a_slider_are_binned_and_of_buttons_are_not() -> None:
    """Catches hundreds of criteria for a continuous confidence, and levels of a scale that are merged."""
    rng = np.random.default_rng(0)
    assert set(meta_d.bin_levels(np.array([0, 0.25, 0.5, 1.0, 1.0]))) == {0, 1, 2, 3}
    counts = np.bincount(meta_d.bin_levels(rng.random(1000)))
    assert len(counts) == 4
    assert counts.min() >= 249


def test_a_rating_that_nobody_gave_changes_nothing() -> None:
    """Catches a criterion without responses, which could be anywhere: the search would not end, or errors be zero."""
    counts = arrange([36, 24, 17, 20, 10, 12, 9, 2], [1, 4, 10, 11, 19, 18, 28, 39])
    padded = np.insert(counts, 2, 0, axis=3)
    assert meta_d.fit(padded).meta_d == pytest.approx(meta_d.fit(counts).meta_d, abs=1e-6)


def test_the_analysis_is_offered_with_confidence_and_drawn() -> None:
    """Catches an analysis that is offered without ratings, and a figure or sentence of another measure."""
    frame = complete(rate(4, NOISE, people=30))
    study = AnalysedStudy(prepare(frame))
    made = compute("metacognition", study)
    assert made.conclusion.startswith(
        "Participants were more confident in correct responses than in incorrect ones with"
    )
    assert made.figure is not None
    drawn = made.figure.data[0]
    np.testing.assert_allclose(list(drawn.y), made.table["auc2"])
    assert made.figure.layout.yaxis.title.text == "Type 2 AUC"
    assert "metacognition" not in list_analyses(AnalysedStudy(prepare(frame.drop(columns="confidence"))))
