"""Attacks, margins and frequencies over a set, against the functions of the core asked directly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from core.errors import ForetellError
from core.robustness.attacks import fgsm
from core.robustness.bands import band_margins
from core.robustness.boundary import critical_samples, directions_between
from core.robustness.boundary import margins as margins_of
from core.robustness.frequencies import accuracy_by_radius
from inquiry.layers.inspection import LayerInspection, LayerQuery
from inquiry.layers.question_files import inspect_files
from inquiry.layers.robustness.attacks import attacks, margins
from inquiry.layers.robustness.frequencies import bands, frequencies
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.core.scenes import scene_net

SETTINGS = {"split": "adversarial", "size": 48}


@pytest.fixture(scope="module")
def inspected():
    """48 shifted scenes, of which the network is wrong about some."""
    classifier = scene_net()
    images = open_set(ImageSource.model_validate({"set": "scenes", **SETTINGS}), None)
    return LayerInspection(classifier, images, LayerQuery("attacks", settings=SETTINGS), classifier)


def quiet(*_):
    """A progress nobody sees."""


def test_attacks_count_what_stays_right_and_what_changes(inspected):
    """Next to the core's searches. Catches a table without the accuracy that attacks start from."""
    table = attacks(inspected, quiet, names="fgsm", radii="1,6").set_index("grey_levels")
    network, inputs = inspected.classifier, inspected.inputs
    answers = network.logits(inputs).argmax(1)
    right = answers == torch.from_numpy(inspected.classes)
    assert 0.2 < float(right.double().mean()) < 0.9
    for radius in (1, 6):
        found = fgsm(network, inputs, answers.tolist(), radius=radius / 255)
        assert table.loc[radius, "right"] == pytest.approx(float((right & ~found.fooled).double().mean()))
        critical = critical_samples(network, inputs, attack="fgsm", radius=radius / 255)
        expected = (critical.ratio, *critical.interval)
        assert table.loc[radius, ["critical", "critical_low", "critical_high"]].tolist() == pytest.approx(expected)
    assert table.loc[0, "right"] == pytest.approx(float(right.double().mean()))
    assert table.loc[0, "critical"] == 0
    assert table.loc[6, "right"] < table.loc[1, "right"] <= float(right.double().mean())


def test_margins_are_those_of_the_core_in_the_same_directions(inspected):
    table = margins(inspected, quiet, images=2, directions=3)
    order = inspected.classifier.logits(inspected.inputs)[1].argsort(descending=True).tolist()
    labels = inspected.classes.tolist()
    apart = directions_between(inspected.inputs, labels, order[0], order[1])[:3]
    one = inspected.inputs[1:2]
    assert table["anywhere"].iloc[1] == pytest.approx(float(margins_of(inspected.classifier, one)[0]), rel=1e-3)
    expected = float(margins_of(inspected.classifier, one, apart)[0])
    assert table["discriminative"].iloc[1] == pytest.approx(expected, rel=1e-3)
    assert (table["anywhere"] <= np.minimum(table["discriminative"], table["random"])).all()


def test_bands_are_those_of_the_core_with_the_interval_of_order_statistics(inspected):
    """Columns of other bands; an interval of another confidence. Oracle: the core, and ranks counted by hand."""
    table = bands(inspected, quiet, images=6, bands=2)
    found = np.sort(band_margins(inspected.classifier, inspected.inputs[:6], 2).numpy(), axis=0)
    np.testing.assert_allclose(table["median"], found[2], rtol=2e-3)  # the third of six
    # With six values, only their ends have 95%: (1/2)^6 = 1.6% on either side.
    np.testing.assert_allclose(table[["median_low", "median_high"]].T, found[[0, 5]], rtol=2e-3)
    side = inspected.inputs.shape[-1]
    assert table[["low", "high"]].to_numpy().tolist() == [[0, side / 4], [side / 4, side / 2]]
    assert table["dimension"].tolist() == [3 * (side // 2) ** 2] * 2
    few = bands(inspected, quiet, images=5, bands=1).iloc[0]
    assert (few["median_low"], few["median_high"], few["images"], few["met"]) == (0, np.inf, 5, 1)


def test_frequencies_are_those_of_the_core_with_their_intervals(inspected):
    table = frequencies(inspected, quiet, radii="3,20")
    found = accuracy_by_radius(inspected.classifier, inspected.inputs, inspected.classes.tolist(), [3, 20])
    assert table["coarse"].tolist() == pytest.approx(found.low.tolist())
    assert table["fine"].tolist() == pytest.approx(found.high.tolist())
    assert (table["coarse"].between(table["coarse_low"], table["coarse_high"])).all()
    assert table["whole"].iloc[0] == pytest.approx(found.whole)


def test_a_kill_costs_at_most_a_block(inspected, tmp_path, monkeypatch):
    asked: list[int] = []
    step = fgsm

    def counted(network, inputs, *rest, **named):
        asked.append(len(inputs))
        return step(network, inputs, *rest, **named)

    monkeypatch.setattr("core.robustness.attacks.fgsm", counted)

    def killed(done, total, what):
        if done == 32:
            raise KeyboardInterrupt

    kept = LayerInspection(inspected.classifier, inspected.images, inspected.request, inspected.classifier, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        attacks(kept, killed, names="fgsm", radii="2")
    again = attacks(kept, quiet, names="fgsm", radii="2")
    assert asked == [16, 16, 16]
    assert not list(tmp_path.iterdir())
    assert again["right"].iloc[-1] == attacks(inspected, quiet, names="fgsm", radii="2")["right"].iloc[-1]


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"names": "fgms"}, "Did you mean 'fgsm'"),
        ({"radii": "1;2"}, "is not a list of numbers separated by commas"),
        ({"radii": "0"}, "a radius is more than 0 and at most 255 grey levels"),
        ({"radius": "1"}, "Did you mean 'radii'"),
    ],
)
def test_wrong_input_is_one_sentence(parameters, sentence, tmp_path):
    with pytest.raises(ForetellError, match=sentence):
        inspect_files(LayerQuery("attacks", settings=SETTINGS, parameters=parameters), tmp_path)


def relabelled(inspected, classes):
    """The same pictures whose labels are other classes."""
    other = replace(inspected)
    other.__dict__["classes"] = classes
    return other


def test_a_image_called_what_the_set_has_none_of_has_no_margin_along_what_tells_classes_apart(inspected):
    """Catches a set refused for one answer: networks name classes that a set of photographs does not hold."""
    answers = inspected.classifier.logits(inspected.inputs).argmax(1).numpy()
    wrong = int(np.flatnonzero(answers != inspected.classes)[0])
    without = np.where(inspected.classes == answers[wrong], -1, inspected.classes)
    place = int((without[:wrong] >= 0).sum())
    row = margins(relabelled(inspected, without), quiet, images=place + 1, directions=2).iloc[place]
    assert (row["image"], row["right"]) == (inspected.images.ids[wrong], False)
    assert np.isfinite(row["anywhere"])
    assert row[["discriminative", "random"]].isna().all()


def test_margins_of_one_class_are_refused_in_a_sentence(inspected):
    """Catches a stack about an iterator that was empty."""
    with pytest.raises(ForetellError, match="need images of two or more classes: give a set with more"):
        margins(relabelled(inspected, np.zeros(48, np.int64)), quiet, images=1)
