"""Erased channels and erased evidence over a set, against the functions of the core, image by image."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from core.attribution.gradients.plain import input_x_gradient
from core.attribution.maps.erasure import channel_importance
from core.errors import ForetellError
from core.faithfulness.erasure import log_odds_erasure
from inquiry.layers.explanations.evidence import evidence
from inquiry.layers.inspection import LayerInspection, LayerQuery
from inquiry.layers.question_files import inspect_files
from inquiry.layers.units.importance import importance
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.core.scenes import scene_net

SETTINGS = {"split": "adversarial", "size": 12}


def inspect(*layers: str) -> LayerInspection:
    images = open_set(ImageSource.model_validate({"set": "scenes", **SETTINGS}), None)
    request = LayerQuery("importance", settings=SETTINGS, layers=layers)
    return LayerInspection(scene_net(), images, request, scene_net())


def quiet(*_) -> None:
    """Report nothing."""


def test_importance_is_the_mean_over_images_with_its_error():
    """Blocks joined in another order, an error of another quantity, classes of other images. Oracle: one at a time."""
    inspected = inspect("features.0", "input")
    network, inputs = inspected.classifier, inspected.inputs
    predicted = network.logits(inputs).argmax(1).tolist()
    labels = inspected.classes.tolist()
    assert predicted != labels
    for of, classes in (("prediction", predicted), ("label", labels)):
        table = importance(inspected, quiet, of=of)
        for layer in ("features.0", "input"):
            each = [
                channel_importance(network, inputs[i : i + 1], [classes[i]], layer).numpy() for i in range(len(inputs))
            ]
            own = table[table["layer"] == layer]
            np.testing.assert_allclose(own["importance"], np.mean(each, 0), rtol=1e-3, atol=1e-5)
            np.testing.assert_allclose(own["error"], stats.sem(each), rtol=1e-3, atol=1e-5)
            np.testing.assert_allclose(own["median"], np.median(each, 0), rtol=1e-3, atol=1e-4)
            assert own["channel"].tolist() == list(range(len(each[0])))
    assert set(table["images"]) == {12}


def test_images_without_surprise_are_left_out(monkeypatch):
    """One image of which the network is certain ends the question for a whole set."""
    inspected = inspect("input")
    own = inspected.classifier.logits
    certain = inspected.inputs[3]

    def logits(x):
        found = own(x)
        found[(x == certain).flatten(1).all(1), 0] += 1e4
        return found

    monkeypatch.setattr(inspected.classifier, "logits", logits)
    assert set(importance(inspected, quiet)["images"]) == {11}
    monkeypatch.setattr(inspected.classifier, "logits", lambda x: own(x) + 1e4 * torch.eye(16)[0])
    with pytest.raises(ForetellError, match="so certain of all these images that their -log p rounds to 0"):
        importance(inspected, quiet)


def test_evidence_is_log_odds_erasure_of_each_method_next_to_random_pixels():
    """Heatmaps of swapped classes, blocks out of order, an unpaired control. Oracle: the core on all images at once."""
    inspected = inspect()
    network, inputs = inspected.classifier, inspected.inputs
    table = evidence(inspected, quiet, methods="input_x_gradient, occlusion", share=0.1).set_index("method")
    order = network.logits(inputs).argsort(1, descending=True)
    own, other = order[:, 0].tolist(), order[:, 1].tolist()
    maps = [input_x_gradient(network, inputs, classes).map for classes in (own, other)]
    expected = log_odds_erasure(network, inputs, own, other, *maps, share=0.1)
    row = table.loc["input_x_gradient"]
    assert row["log_odds"] == pytest.approx(float(expected.before.mean()), rel=1e-4)
    assert row["change"] == pytest.approx(float(expected.change.mean()), rel=1e-3)
    low, high = stats.t.interval(0.95, 11, row["change"], stats.sem(expected.change.numpy()))
    assert (row["change_low"], row["change_high"]) == pytest.approx((low, high), rel=1e-2)
    size = inputs[0, 0].numel()
    assert row["pixels"] == pytest.approx(float(expected.erased.double().mean()) / size)
    assert row["above_random"] == pytest.approx(row["change"] - row["random"], abs=1e-6)
    draws = []
    for seed in range(12):
        noise = torch.rand(inputs.shape[0], *inputs.shape[2:], generator=torch.Generator().manual_seed(seed)) + 0.1
        blank = torch.zeros_like(noise)
        draws.append(float(log_odds_erasure(network, inputs, own, other, noise, blank, share=0.1).change.mean()))
    assert abs(row["random"] - np.mean(draws)) < 4 * np.std(draws)
    assert table.loc["occlusion", "change"] > 0


@pytest.mark.parametrize(
    ("question", "parameters", "sentence"),
    [
        ("evidence", {"methods": "grad_cm"}, "Did you mean"),
        ("evidence", {"share": "2"}, "give the share of pixels"),
        ("importance", {"of": "all"}, "choose one of prediction, label"),
        ("bands", {"bands": "0"}, "bands=0: give 1 to"),
        ("probes", {"hidden": "-1"}, "at least one hidden unit"),
    ],
)
def test_wrong_input_is_one_sentence(question, parameters, sentence, tmp_path):
    settings = {"split": "standard", "size": 96}
    with pytest.raises(ForetellError, match=sentence):
        inspect_files(LayerQuery(question, settings=settings, parameters=parameters), tmp_path)
