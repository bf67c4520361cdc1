"""Planted wrong labels are found, and every line of evidence is what its pictures say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from core.network.classifier import Classifier
from core.types import silent
from core.uncertainty.reliability import error_detection
from inquiry.debugging.debugging import debug_classifier, label_evidence, outlier_evidence
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.core.scenes import scene_net

SIZE, PLANTED = 240, 24


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Scenes of both kinds, a tenth of each with a label drawn at random from the other fifteen."""
    cache = tmp_path_factory.mktemp("cache")

    def make(split):
        images = open_set(ImageSource.model_validate({"set": "scenes", "split": split, "size": SIZE}), None)
        rng = np.random.default_rng(5)
        wrong = rng.permutation(SIZE)[:PLANTED]
        labels = images.labels.copy()
        labels[wrong] = (labels[wrong] + rng.integers(1, len(images.categories), PLANTED)) % len(images.categories)
        changed = replace(images, labels=labels, digest=f"planted {images.digest}")
        is_wrong = np.isin(np.arange(SIZE), wrong)
        return debug_classifier(scene_net(), changed, cache, silent), is_wrong

    return {split: make(split) for split in ("standard", "adversarial")}


def test_planted_labels_are_found_where_the_network_can_be_believed(planted):
    """Chance is a precision of a tenth; of ordinary scenes the network knows nine of ten and more."""
    found, wrong = planted["standard"]
    likely = found.labels.likely
    assert (likely & wrong).sum() / likely.sum() > 0.85
    assert (likely & wrong).sum() / PLANTED > 0.85
    assert wrong[found.find_label_errors()[:10]].all()
    assert 0.05 < found.labels.share < 0.15


def test_where_the_network_errs_its_own_errors_are_named_and_the_nearest_tell_more(planted):
    """Misleading scenes: what is doubtful is hardly ever a wrong label, and the page must not pretend otherwise."""
    found, wrong = planted["adversarial"]
    assert (found.labels.likely & wrong).sum() / found.labels.likely.sum() < 0.3
    table = found.table()
    nearest = error_detection(table["neighbours"] - table["neighbours_of_label"], wrong)
    assert nearest.interval[0] > 0.6


def test_labels_that_were_trained_in_are_found_by_a_reader_that_has_not_seen_them(planted, tmp_path):
    """Catches a reader that is trained on what it judges: a network that knows all labels by heart doubts none."""
    images, wrong = planted["standard"][0].images, planted["standard"][1]
    net = scene_net()
    inputs = torch.stack([net.preprocess(images.open(i)) for i in range(SIZE)])
    told = torch.tensor([net.categories.index(images.categories[k]) for k in images.labels])
    network = _by_heart(net, inputs, told)
    found = debug_classifier(
        Classifier(network, net.preprocess, net.categories, name="heart"), images, tmp_path, silent
    )
    assert found.predictions.correct.all()
    assert found.find_label_errors() == found.find_label_errors("both") == []
    named = wrong[found.find_label_errors("features")]
    assert named.mean() > 0.7
    assert named.sum() > PLANTED / 2
    own, read = (error_detection(-one.margin, wrong) for one in (found.labels, found.read))
    assert read.interval[0] > own.area
    first = found.find_label_errors("features")[0]
    suggested = found.class_names[found.read.instead[first]]
    label, predicted = found.label_names[first], found.class_names[found.predictions.predicted[first]]
    title, said = label_evidence(found, first)
    assert title == f"Label: {label}. Suggested: {suggested}"  # without the confidence, which is that of the label
    assert said.startswith(f"Prediction: {predicted} ({found.predictions.probability[first]:.0%}). ")
    assert f"Linear probe: {suggested}. " in said


def _by_heart(net, inputs, labels):
    """The network's trunk under layers trained until they give every label, the wrong ones too."""
    features = net.features(inputs)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        head = nn.Sequential(nn.Linear(features.shape[1], 256), nn.ReLU(), nn.Linear(256, len(net.categories)))
    steps = torch.optim.Adam(head.parameters(), 1e-2)
    while not bool((head(features).argmax(1) == labels).all()):
        steps.zero_grad()
        nn.functional.cross_entropy(head(features), labels).backward()
        steps.step()
    trunk, _ = net._split
    return nn.Sequential(trunk, head)


def test_both_judges_suspect_what_they_agree_on(planted):
    """Catches a choice that shows the images of another one; the table names both."""
    found, wrong = planted["standard"]
    by = {judge: set(found.find_label_errors(judge)) for judge in ("predictions", "features", "both")}
    assert by["both"] == by["predictions"] & by["features"] != by["predictions"] | by["features"]
    assert wrong[sorted(by["both"])].mean() > 0.85
    assert set(np.flatnonzero(found.table()["features_label_error"])) == by["features"]


def test_evidence_is_what_the_images_say(planted):
    """Two short lines. Catches a card of a paragraph, and numbers of another image."""
    found, _ = planted["standard"]
    network, i = scene_net(), found.find_label_errors()[0]
    answer = network.probabilities(network.preprocess(found.images.open(i))[None])[0].numpy()
    label = found.images.categories[found.images.labels[i]]
    title, said = label_evidence(found, i)
    assert title == f"Label: {label}. Suggested: {network.categories[answer.argmax()]} ({answer.max():.0%})"
    near = [found.images.categories[found.images.labels[k]] for k in found.near.indices[i].tolist()]
    rather = network.categories[answer.argmax()]
    assert near.count(rather) > near.count(label)
    assert said.startswith("Linear probe: ")
    assert said.endswith(f". Neighbours: {near.count(label)} of 10 {label}, {near.count(rather)} {rather}.")


def test_an_outlier_is_told_with_its_rank(planted):
    """Catches the sentence about distances that could not be parsed, and the distances of another image."""
    found, _ = planted["standard"]
    ranked = found.outliers()
    away = found.near.isolation
    assert sorted(ranked) == list(range(SIZE))
    assert (np.diff(away[ranked]) <= 0).all()
    lines = outlier_evidence(found, ranked[2])
    assert lines[0] == f"rank 3 of {SIZE}"
    same = (found.images.labels[found.near.indices[ranked[2]].numpy()] == found.images.labels[ranked[2]]).sum()
    distances = f"{away[ranked[2]]:.2f} (median {np.median(away):.2f})"
    assert lines[2] == f"Distance to the 10th nearest: {distances}. Same label: {same} of 10."


def test_the_table_is_of_every_image_in_order(planted):
    found, _ = planted["adversarial"]
    table = found.table()
    assert table["image"].tolist() == list(found.images.ids)
    assert table["label"].tolist() == [found.images.categories[k] for k in found.images.labels]
    assert table["correct"].tolist() == (table["predicted"] == table["label"]).tolist()
    assert (table["label_error"] == (table["rather"] != "")).all()
    np.testing.assert_allclose(table[["component_1", "component_2"]], found.places)


def test_a_set_without_labels_has_neighbours_and_no_verdict(tmp_path):
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 16}), None)
    unlabelled = replace(images, categories=("all",), labels=np.zeros(16, dtype=np.int64), digest="unlabelled")
    found = debug_classifier(scene_net(), unlabelled, tmp_path, silent)
    assert not found.has_known_label.any()
    assert found.labels is None
    assert found.find_label_errors() == []
    assert found.table()["correct"].isna().all()
    assert len(found.outliers()) == 16
    assert outlier_evidence(found, 0)[1].endswith("%).")  # neither right nor wrong


def test_a_network_without_a_last_linear_layer_is_still_asked(tmp_path):
    """A fully convolutional head has answers, and nothing that neighbours could be found in."""
    network = nn.Sequential(nn.Conv2d(3, 16, 5, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    net = scene_net()
    flat = Classifier(network, net.preprocess, net.categories, name="flat")
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 16}), None)
    found = debug_classifier(flat, images, tmp_path, silent)
    assert (found.labels, found.read, found.near, found.places, found.outliers()) == (None, None, None, None, [])
    inputs = torch.stack([flat.preprocess(images.open(i)) for i in range(16)])
    np.testing.assert_allclose(found.table()["confidence"], flat.probabilities(inputs).max(1).values, atol=1e-6)
