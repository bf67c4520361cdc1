"""The Debugging view's calibration: what the page shows against the network asked directly, picture by picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from dashboard.explore.debugging import calibration
from dashboard.explore.debugging import view as debugging
from dashboard.explore.debugging.jobs import make_calibration_task
from dashboard.shared import cache
from dashboard.shared.jobs import pool
from inquiry.debugging.calibration import assess_predictions
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import FEW
from tests.dashboard.views.test_debugging import _numbers, view

__all__ = ["view"]  # the fixture
LINK = {"part": debugging.CALIBRATION}


@pytest.fixture
def asked(opened):
    """(N, K) answers, one picture at a time, and the true classes."""
    network, images = cache.load_classifier("scenes"), gallery_of("scenes", "adversarial").images
    answers = [network.probabilities(network.preprocess(images.open(i))[None])[0].numpy() for i in range(FEW)]
    return np.array(answers), np.array([network.categories.index(images.categories[k]) for k in images.labels])


def test_the_page_tells_the_measures_of_these_answers(view, asked) -> None:
    """Catches a page of other answers than the classifier's: accuracy, confidence and the expected error by hand."""
    p, labels = asked
    app = view(**LINK)
    (table,) = [table.value for table in app.table if "Measure" in table.value.columns]
    shown = table.set_index("Measure")
    right, sure = p.argmax(1) == labels, p.max(1)
    low, high = proportion_confint(right.sum(), FEW, method="wilson")
    assert shown.loc["Accuracy", "Unscaled"] == f"{right.mean():.1%} ({low:.1%} to {high:.1%})"
    assert shown.loc["Mean confidence", "Unscaled"] == f"{sure.mean():.1%}"
    place = np.ceil(sure * 15)
    error = sum(abs((sure - right)[place == k].sum()) for k in set(place)) / FEW
    assert float(shown.loc["Expected calibration error", "Unscaled"]) == pytest.approx(error, abs=6e-4)
    gap = 100 * (sure - right).mean()
    (said,) = [c.value for c in app.caption if "mean confidence is" in c.value]
    assert f"overconfident by {gap:.1f} percentage points" in said
    halves = [float(one) for one in shown.loc["Temperature", "Temperature-scaled"].split(" and ")]
    assert halves == pytest.approx(assess_predictions(p, labels).temperatures, abs=0.01)
    assert min(halves) > 1
    assert len(app.dataframe) == 2  # to take away


def test_the_curve_lies_where_the_answers_are(view, asked) -> None:
    """Catches bins, limits or counts that are not those of the answers."""
    p, labels = asked
    (chart,) = view(**LINK).get("plotly_chart")
    traces = json.loads(chart.proto.spec)["data"]
    line, bars = traces[0], next(trace for trace in traces if trace["type"] == "bar")
    right, place = p.argmax(1) == labels, np.ceil(p.max(1) * 15)
    bins = sorted(set(place))
    np.testing.assert_allclose(_numbers(line["x"]), [p.max(1)[place == k].mean() for k in bins], atol=1e-4)
    np.testing.assert_allclose(_numbers(line["y"]), [right[place == k].mean() for k in bins], atol=1e-6)
    assert _numbers(bars["y"]) == [int((place == k).sum()) for k in bins]
    high = [proportion_confint(right[place == k].sum(), (place == k).sum(), method="wilson")[1] for k in bins]
    np.testing.assert_allclose(np.add(_numbers(line["y"]), _numbers(line["error_y"]["array"])), high, atol=1e-5)


def test_labels_that_the_classifier_does_not_know_say_nothing(view, workspace: Path) -> None:
    images = gallery_of("scenes", "adversarial").images
    folder = workspace / "pictures" / "mine" / "all"
    folder.mkdir(parents=True)
    for i in range(3):
        images.open(i).save(folder / f"{i}.png")
    app = view(name="mine", source="mine", **LINK)
    assert "there are 0. Name the folders" in app.info[0].value
    assert not app.get("plotly_chart")
    assert not app.error


def test_an_ai_that_is_always_right_has_no_temperature(view, monkeypatch) -> None:
    """Catches a number where there can be none."""
    sure = np.tile(np.array([[0.8, 0.2]], np.float32), (6, 1))
    monkeypatch.setattr(
        "dashboard.explore.debugging.jobs.assess_calibration", lambda *_: assess_predictions(sure, np.zeros(6, int))
    )
    request = make_calibration_task(cache.load_classifier("scenes"), gallery_of("scenes", "adversarial").images)
    pool().forget(request.key)  # another test's, and this one's is nobody else's
    app = view(**LINK)
    pool().forget(request.key)
    assert "right about all 6 images" in app.info[0].value
    after = app.table[0].value["Temperature-scaled"]
    assert set(after) == {calibration.NONE}


def test_too_sure_not_sure_enough_or_neither_is_said_with_its_limits() -> None:
    """Catches a verdict of the wrong sign, and one that chance explains."""
    flat = np.tile(np.array([[0.7, 0.3]], np.float32), (20, 1))
    labels = {"over": np.arange(20) % 2, "under": (np.arange(20) == 0).astype(int), "neither": (np.arange(20) % 3 == 0)}
    said = {
        way: calibration.describe_calibration(assess_predictions(flat, of.astype(int))) for way, of in labels.items()
    }
    assert (
        "On 20 images the AI's mean confidence is 70.0% and its accuracy 50.0%: "
        "neither over- nor underconfident beyond chance (20.0" in said["over"]
    )
    assert (
        "On 20 images the AI's mean confidence is 70.0% and its accuracy 95.0%: "
        "underconfident by 25.0 percentage points (95%: −34.8 to −15.2)" in said["under"]
    )
    more = assess_predictions(np.repeat(flat, 10, axis=0), np.repeat(labels["over"], 10))
    assert "overconfident by 20.0 percentage points (95%: 13.1 to 26.9)" in calibration.describe_calibration(more)
