"""How sure the AI is, on the Explore page, against the engine asked directly."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.uncertainty import UNCERTAINTY_MEASURES
from core.uncertainty.samplers import inserted_dropout
from dashboard.explore.uncertainty import view as uncertainty
from dashboard.shared import cache
from tests.dashboard.conftest import gallery_of
from tests.dashboard.views.conftest import settled


def test_nothing_is_asked_unasked(app) -> None:
    assert app.selectbox(key="noise").value == uncertainty.NOT
    assert not any("Meaning" in table.value.columns for table in app.table)


def test_the_answers_under_noise_are_those_of_the_sampler(opened) -> None:
    app = settled(opened(method="Gradient", noise="Inserted dropout", image="adversarial/3", seed="7"))
    (table,) = [table.value for table in app.table if "Meaning" in table.value.columns]
    classifier, images = cache.load_classifier("scenes"), gallery_of("scenes", "adversarial").images
    inputs = classifier.preprocess(images.open(3))[None]
    answers = inserted_dropout(classifier, inputs, generator=torch.Generator().manual_seed(7)).softmax(-1)
    for name, value in zip(table["Measure"], table["Value"], strict=True):
        estimate = UNCERTAINTY_MEASURES[name.lower().replace(" ", "_")](answers)
        nats = np.log(2) if name in ("Entropy", "Mutual information") else 1  # of a bit
        expected = f"{float(estimate.value[0]) / nats:.3f}\u00a0±\u00a0{float(estimate.error[0]) / nats:.3f}"
        assert value == expected
    (chart,) = [c for c in app.get("plotly_chart") if "under noise" in c.proto.spec]
    likeliest = classifier.categories[int(answers[0].mean(0).argmax())]
    assert likeliest in chart.proto.spec


def test_noise_that_does_not_fit_the_network_is_not_offered(opened) -> None:
    """Catches a first choice that ends in an error: the network of the scenes has no dropout."""
    app = settled(opened(method="Gradient", noise="MC dropout"))
    assert not app.error
    assert app.selectbox(key="noise").options == ["None", *map(uncertainty.format_name, uncertainty.OFFERED[1:])]
    assert any("Not offered: MC dropout. scenes has no dropout" in caption.value for caption in app.caption)
    assert any("names the noise “MC dropout”" in warning.value for warning in app.warning)


def test_every_measure_is_explained() -> None:
    assert set(uncertainty.MEANINGS) == set(UNCERTAINTY_MEASURES)


def test_the_bars_are_means_and_quantiles(opened) -> None:
    """By hand: 100 passes, nine tenths of them between the ends of the line."""
    classifier, images = cache.load_classifier("scenes"), gallery_of("scenes", "adversarial").images
    seen = uncertainty.ClassifiedImage("scenes", type("Chosen", (), {"image": images.open(5), "truth": None})())
    answers = inserted_dropout(classifier, seen.inputs[None], generator=torch.Generator().manual_seed(0)).softmax(-1)[0]
    bars = uncertainty.figure(seen, uncertainty.UncertaintyResult(answers, {})).data[0]
    best = int(answers.mean(0).argmax())
    assert bars.y[-1] == classifier.categories[best]
    assert bars.x[-1] == pytest.approx(float(answers.mean(0)[best]))
    low, high = bars.x[-1] - bars.error_x.arrayminus[-1], bars.x[-1] + bars.error_x.array[-1]
    inside = ((answers[:, best].numpy() >= low - 1e-6) & (answers[:, best].numpy() <= high + 1e-6)).mean()
    assert 0.88 <= inside <= 0.92 or np.ptp(answers[:, best].numpy()) < 1e-6
