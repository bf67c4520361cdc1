"""What labels say of a network's confidence: against loops, other packages and known answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import mannwhitneyu, t
from statsmodels.stats.proportion import proportion_confint

from core.errors import ForetellError
from core.types import silent
from inquiry.debugging.calibration import COOLED, GIVEN, assess_calibration, assess_predictions
from inquiry.debugging.debugging import debug_classifier
from study.network.predictions import SHARD
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.core.scenes import scene_net

COUNT = 240


@pytest.fixture(scope="module")
def answers():
    """Answers three times as sharp as they should be: (N, K) float32, and the labels."""
    rng = np.random.default_rng(7)
    logits = rng.normal(size=(COUNT, 5)) * 2
    labels = np.array([rng.choice(5, p=p) for p in softmax(logits, axis=1)])
    return softmax(3 * logits, axis=1).astype(np.float32), labels


@pytest.fixture(scope="module")
def found(answers):
    return assess_predictions(*answers)


def slow_error(p, labels) -> float:
    """Guo et al. 2017, equation 3 to 5, one picture at a time, in 15 bins."""
    total = 0.0
    for k in range(15):
        inside = [i for i in range(len(p)) if k / 15 < p[i].max() <= (k + 1) / 15]
        right = sum(int(p[i].argmax() == labels[i]) for i in inside)
        total += abs(right - sum(float(p[i].max()) for i in inside)) / len(p)
    return total


def test_the_measures_are_those_of_loops(answers, found) -> None:
    """Catches a measure of the wrong answers, and a temperature that changes what it must not."""
    p, labels = answers
    wrong = p.argmax(1) != labels
    assert found.given.calibration.expected_error == pytest.approx(slow_error(p, labels), abs=1e-6)
    assert found.given.confidence == pytest.approx(np.mean([max(row) for row in p]))
    limits = proportion_confint((~wrong).sum(), COUNT, method="wilson")
    assert found.accuracy == pytest.approx(((~wrong).mean(), *limits), abs=1e-6)
    sure = p.max(1).astype(float)
    u = mannwhitneyu(-sure[wrong], -sure[~wrong]).statistic
    assert found.given.detection.area == pytest.approx(u / (wrong.sum() * (~wrong).sum()))
    areas = []
    for k, temperature in ((0, found.temperatures[1]), (1, found.temperatures[0])):
        s, w = softmax(np.log(p[k::2].astype(float)) / temperature, axis=1).max(1), wrong[k::2]
        areas.append(mannwhitneyu(-s[w], -s[~w]).statistic / (w.sum() * (~w).sum()))
    assert found.cooled.detection.area == pytest.approx(np.mean(areas), abs=1e-4)
    table = found.measures().set_index(["predictions", "measure"])
    assert table.loc[(GIVEN, "accuracy"), "value"] == table.loc[(COOLED, "accuracy"), "value"]
    assert found.cooled.calibration.expected_error < 0.6 * found.given.calibration.expected_error
    assert all(2 < one < 5 for one in found.temperatures)


def test_how_much_too_sure_it_is_with_limits_of_the_pairs(answers, found) -> None:
    """Catches limits that take confidence and accuracy for independent: scipy's t interval of the differences."""
    p, labels = answers
    difference = p.max(1) - (p.argmax(1) == labels)
    limits = t.interval(0.95, COUNT - 1, difference.mean(), difference.std(ddof=1) / COUNT**0.5)
    assert found.given.gap == pytest.approx((difference.mean(), *limits), abs=0.005)
    assert found.given.gap.low > 0
    assert found.cooled.gap.low < 0 < found.cooled.gap.high


def test_the_bins_hold_every_answer_with_wilsons_limits(answers, found) -> None:
    """Catches limits of the wrong count, and answers that are in no bin."""
    p, labels = answers
    bins = found.bins()
    for name in (GIVEN, COOLED):
        assert bins[bins["predictions"] == name]["images"].sum() == COUNT
    for row in bins[bins["predictions"] == GIVEN].itertuples():
        inside = [i for i in range(COUNT) if row[2] < p[i].max() <= row.to]
        right = sum(int(p[i].argmax() == labels[i]) for i in inside)
        assert (row.images, row.accuracy) == (len(inside), pytest.approx(right / len(inside)))
        limits = proportion_confint(right, len(inside), method="wilson")
        assert (row.low, row.high) == pytest.approx(limits, abs=1e-6)


def test_what_cannot_be_had_is_a_sentence_and_no_number() -> None:
    """Catches a temperature at the edge of those tried, or an area of nothing."""
    sure = np.tile(np.array([[0.8, 0.2]], np.float32), (6, 1))
    for labels, sentence in ((np.zeros(6, int), "right about all 6 images"), (np.ones(6, int), "wrong about all 6")):
        one = assess_predictions(sure, labels)
        assert (one.cooled, one.temperatures, one.given.detection) == (None, None, None)
        (said,) = one.lacking
        assert sentence in said
        assert set(one.measures()["predictions"]) == {GIVEN}
    one = assess_predictions(sure, np.array([0, 0, 0, 0, 0, 1]))
    assert (one.cooled, one.given.detection) == (None, None)
    assert [said[:20] for said in one.lacking] == ["There are 1 errors a", "A temperature is fit"]
    with pytest.raises(ForetellError, match=r"there are 1\. Name the folders"):
        assess_predictions(sure[:1], np.zeros(1, int))


def test_errors_all_less_sure_have_no_interval() -> None:
    """Catches the certainty of DeLong's error 0 where five pictures say nothing so sure."""
    p = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4], [0.55, 0.45]], np.float32)
    measures = assess_predictions(p, np.array([0, 0, 0, 1, 1])).measures().set_index("measure")
    area = measures.loc["AUROC of confidence for errors"]
    assert area["value"] == 1
    assert np.isnan(area["low"])
    assert np.isnan(area["high"])


def test_the_answers_of_an_open_set_are_not_asked_for_again(tmp_path, monkeypatch) -> None:
    """Catches a second pass over a set of thousands, and labels that are not those of the answers."""
    classifier = scene_net()
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "adversarial", "size": 40}), None)
    assert len(images) < SHARD
    answers = debug_classifier(classifier, images, tmp_path, silent).predictions

    def refuse(*_: object) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr("study.network.predictions._compute_shard", refuse)
    found = assess_calibration(classifier, images, tmp_path, silent)
    assert found.accuracy.value == pytest.approx(answers.correct.mean())
    assert found.given.confidence == pytest.approx(answers.probability.mean(), abs=1e-6)
