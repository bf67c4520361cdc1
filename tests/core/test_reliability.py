"""Calibration, temperature and the detection of errors, against loops, brute force and known answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import mannwhitneyu

from core.errors import ForetellError
from core.uncertainty.reliability import (
    best_temperature,
    calibration,
    compare_detection,
    cross_fit_temperatures,
    detection_by_halves,
    error_detection,
)


def answers(seed: int, size: int = 400, classes: int = 4, sharpness: float = 1.0):
    """Logits whose softmax at ``sharpness`` 1 is exactly the chance of each label."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(size, classes)) * 2
    labels = np.array([rng.choice(classes, p=p) for p in softmax(logits, axis=1)])
    return logits * sharpness, labels


def test_calibration_agrees_with_loops():
    """Slow re-implementation: the bins of Guo et al. 2017, equations 3 to 5, one picture at a time."""
    logits, labels = answers(0, sharpness=2.0)
    p = softmax(logits, axis=1)
    found = calibration(p, labels, bins=10)
    total, brier = 0.0, 0.0
    for low in range(10):
        inside = [i for i in range(len(p)) if low / 10 < p[i].max() <= (low + 1) / 10]
        if inside:
            accuracy = sum(p[i].argmax() == labels[i] for i in inside) / len(inside)
            confidence = sum(p[i].max() for i in inside) / len(inside)
            assert found.accuracy[low] == pytest.approx(accuracy)
            assert found.confidence[low] == pytest.approx(confidence)
            total += len(inside) / len(p) * abs(accuracy - confidence)
        assert found.count[low] == len(inside)
    for row, label in zip(p, labels, strict=True):
        brier += sum((row[k] - (k == label)) ** 2 for k in range(len(row))) / len(p)
    assert found.expected_error == pytest.approx(total)
    assert found.brier == pytest.approx(brier)


def test_sure_and_right_or_sure_and_wrong():
    """Expected error and Brier score 0 and 0, 1 and 2."""
    sure = np.eye(3)[[0, 1, 2]]
    right, wrong = calibration(sure, [0, 1, 2]), calibration(sure, [1, 2, 0])
    assert (right.expected_error, right.brier) == (0, 0)
    assert (wrong.expected_error, wrong.brier) == (1, 2)


def test_an_answer_on_an_edge_belongs_to_the_bin_below():
    """(.4, .5] holds .5: intervals closed on the right, as in the paper."""
    found = calibration([[0.5, 0.5], [1.0, 0.0]], [0, 0], bins=10)
    assert found.count[4] == found.count[9] == 1


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_the_temperature_by_which_logits_were_divided_is_found(temperature):
    """Labels drawn at temperature 1 and logits times T: T is the best within its own error (about 7 %)."""
    logits, labels = answers(1, size=4000, sharpness=temperature)
    assert best_temperature(logits, labels) == pytest.approx(temperature, rel=0.1)
    grid = np.geomspace(0.05, 20, 4000)
    loss = [-np.log(softmax(logits / t, axis=1)[np.arange(4000), labels]).mean() for t in grid[::40]]
    assert best_temperature(logits, labels) == pytest.approx(grid[::40][int(np.argmin(loss))], rel=0.07)


def test_no_best_temperature_is_said():
    with pytest.raises(ForetellError, match="No temperature"):
        best_temperature(np.eye(3) * 5, [0, 1, 2])


def test_each_half_is_cooled_by_the_other():
    """Catches a temperature judged on the pictures it was fitted on: by a grid and one picture at a time."""
    logits, labels = answers(5, size=60, sharpness=3.0)
    p = softmax(logits, axis=1)
    (even, odd), cooled = cross_fit_temperatures(p, labels)
    grid = np.geomspace(0.5, 10, 3000)
    for half, found in ((0, even), (1, odd)):
        rows = range(half, 60, 2)
        loss = [sum(-np.log(softmax(logits[i] / t)[labels[i]]) for i in rows) for t in grid[::10]]
        assert found == pytest.approx(grid[::10][int(np.argmin(loss))], rel=0.02)
    assert even != pytest.approx(odd, rel=0.01)
    for i in range(60):
        np.testing.assert_allclose(cooled[i], softmax(logits[i] / (even if i % 2 else odd)), rtol=1e-6)


def test_an_answer_too_small_for_its_precision_is_not_taken_for_nothing():
    """Catches the logarithm of float64's smallest number, -708, where float32 gave up at -87."""
    p = np.tile(np.array([[1.0, 0.0], [0.9, 0.1]], np.float32), (20, 1)).repeat(2, axis=0)
    labels = np.tile([0, 0, 0, 1], 20)
    labels[:2] = 1  # one of each half gave its truth nothing
    found, _ = cross_fit_temperatures(p, labels)
    logits = np.array([[0, -87.3365], [np.log(0.9), np.log(0.1)]])[np.tile([0, 0, 1, 1], 20)]
    assert found == pytest.approx([best_temperature(logits[k::2], labels[k::2]) for k in (0, 1)], rel=1e-3)


def test_a_half_without_an_error_is_said():
    p = np.tile([[0.9, 0.1]], (8, 1))
    with pytest.raises(ForetellError, match="fitted on each half of the images, and one has none"):
        cross_fit_temperatures(p, [0, 0, 0, 0, 0, 1, 0, 1])


def test_the_area_agrees_with_mann_whitney_and_its_error_with_resampling():
    """scipy's U statistic with ties; DeLong's error against the spread over 400 fresh samples."""
    rng = np.random.default_rng(3)
    areas, errors = [], []
    for _ in range(400):
        wrong = rng.random(150) < 0.3
        measure = np.round(rng.normal(size=150) + wrong, 1)
        found = error_detection(measure, wrong)
        u = mannwhitneyu(measure[wrong], measure[~wrong]).statistic
        assert found.area == pytest.approx(u / (wrong.sum() * (~wrong).sum()))
        areas.append(found.area)
        errors.append(found.error)
    assert np.mean(errors) == pytest.approx(np.std(areas), rel=0.12)


def test_a_measure_that_is_another_in_each_half_is_judged_within_them():
    """Catches an area across halves whose scales differ: here the odd ones are all larger than the even ones."""
    rng = np.random.default_rng(6)
    wrong = rng.random(200) < 0.4
    one = rng.normal(size=200) + wrong
    shifted = one + 100 * (np.arange(200) % 2)
    halves = [error_detection(one[k::2], wrong[k::2]) for k in (0, 1)]
    found = detection_by_halves(shifted, wrong)
    assert found.area == pytest.approx(sum(half.area for half in halves) / 2)
    assert found.error == pytest.approx(sum(half.error**2 for half in halves) ** 0.5 / 2)
    assert (found.wrong, found.right) == (wrong.sum(), (~wrong).sum())
    assert error_detection(shifted, wrong).area < found.area - 0.1
    with pytest.raises(ForetellError, match="In one: There are 1 errors"):
        detection_by_halves(one[:8], [True, False, False, False, True, False, False, True])


def test_measures_compare_on_the_same_images():
    """A measure against itself: 0 and no error. Two alike measures differ less than their own errors say."""
    rng = np.random.default_rng(4)
    wrong = rng.random(300) < 0.4
    one = rng.normal(size=300) + wrong
    two = one + 0.1 * rng.normal(size=300)
    assert compare_detection(one, one, wrong) == (0.0, 0.0)
    difference, error = compare_detection(one, two, wrong)
    assert difference == pytest.approx(error_detection(one, wrong).area - error_detection(two, wrong).area)
    assert 0 < error < 0.5 * error_detection(one, wrong).error


def test_too_few_errors_are_said():
    with pytest.raises(ForetellError, match="1 errors and 9 correct predictions"):
        error_detection(np.arange(10), np.arange(10) == 3)
