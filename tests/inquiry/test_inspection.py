"""What layers hold, asked of a set: tables against the functions of the core they stand for, kills, wrong input."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from statsmodels.stats.contingency_tables import mcnemar

from core.errors import ForetellError
from core.layers.consistency import Consistency
from core.layers.deletion import delete_units
from core.layers.information import compute_label_information
from core.layers.layers import means_of
from core.layers.probe import linear_probe, perceptron_probe
from core.layers.similarity import svcca
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerInspection, LayerQuery, blocks
from inquiry.layers.question_files import inspect_files
from inquiry.layers.representations.consistency import ComparedPair, list_blind_spots
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.core.scenes import scene_net
from tests.inquiry.killing import killed_and_whole

SETTINGS = {"split": "standard", "size": 96}
OTHER = """
import torch
from torch import nn
from data.scenes.shapes import CATEGORIES
def build():
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(3, 12, 5, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 16))
"""


@pytest.fixture(scope="module")
def asked():
    """What a question says of the built-in network and 96 scenes."""
    classifier = scene_net()
    images = open_set(ImageSource.model_validate({"set": "scenes", **SETTINGS}), None)

    def ask(question, layers=(), **other):
        request = LayerQuery(question, settings=SETTINGS, layers=layers, **other)
        inspected = LayerInspection(classifier, images, request, classifier)
        return inspected, QUESTIONS[question](inspected, lambda *_: None)

    return ask


def test_the_blocks_of_a_network_are_its_layers_in_order():
    assert blocks(scene_net()) == (*(f"features.{k}" for k in range(6)), "pool", "flatten", "head")


def test_probes_read_category_and_context(asked):
    inspected, table = asked("probes", ("features.2", "features.5"))
    assert table[["layer", "of"]].to_numpy().tolist() == [
        [layer, of] for layer in ("features.2", "features.5") for of in ("category", "context")
    ]
    features = means_of(inspected.classifier, inspected.inputs, "features.5")
    expected = linear_probe(features, torch.from_numpy(inspected.images.labels))
    row = table[(table["layer"] == "features.5") & (table["of"] == "category")].iloc[0]
    assert row["accuracy"] == pytest.approx(expected.accuracy)
    assert (table["accuracy"].between(table["low"], table["high"])).all()


def test_information_is_that_of_the_layers_features(asked):
    """Against the core's functions, given the features here. Catches another layer's row, and bits of another label."""
    inspected, table = asked("information", ("features.1", "features.5"))
    assert table[["layer", "of"]].to_numpy().tolist() == [
        [layer, of] for layer in ("features.1", "features.5") for of in ("category", "context", "image")
    ]
    rows = table.set_index(["layer", "of"])
    contexts = torch.from_numpy(np.unique(inspected.images.contexts, return_inverse=True)[1])
    for layer in ("features.1", "features.5"):
        features = means_of(inspected.classifier, inspected.inputs, layer)
        alone = compute_label_information(features, contexts, generator=inspected.generator())
        assert rows.loc[(layer, "context"), ["bits", "most"]].tolist() == pytest.approx([alone.bits, alone.most])
        assert rows["low"][layer, "context"] == pytest.approx(alone.bits - 1.96 * alone.error)
        high = min(alone.bits + 1.96 * alone.error, alone.most)
        assert rows["high"][layer, "context"] == pytest.approx(high)
    assert rows.loc[("features.5", "category"), "bits"] > rows.loc[("features.1", "category"), "bits"]
    assert rows.loc[("features.1", "image"), "bits"] > rows.loc[("features.5", "image"), "bits"]


def test_a_perceptron_is_compared_with_the_linear_probe_image_by_image(asked):
    """A p-value of other images than those that differ; the linear accuracy in the perceptron's column."""
    inspected, _ = asked("probes", ("features.2",))
    table = QUESTIONS["probes"](inspected, lambda *_: None, hidden=4)
    features, labels = means_of(inspected.classifier, inspected.inputs, "features.2"), inspected.images.labels
    known = torch.from_numpy(np.asarray(labels))
    linear, deep = linear_probe(features, known), perceptron_probe(features, known, hidden=4)
    row = table[table["of"] == "category"].iloc[0]
    assert (row["linear"], row["accuracy"]) == pytest.approx((linear.accuracy, deep.accuracy))
    right, also = (probe.predicted == known for probe in (linear, deep))
    counts = [[0, int((right & ~also).sum())], [int((also & ~right).sum()), 0]]
    assert row["p_value"] == pytest.approx(mcnemar(counts, exact=True).pvalue)
    assert linear.accuracy != deep.accuracy


def test_similarity_compares_every_layer_with_every_other(asked):
    inspected, table = asked("similarity", ("features.0", "features.1"))
    own = [means_of(inspected.classifier, inspected.inputs, layer) for layer in ("features.0", "features.1")]
    assert table["similarity"].iloc[1] == pytest.approx(svcca(*own).mean)
    assert table["similarity"].iloc[[0, 3]].tolist() == pytest.approx([1, 1])
    assert len(table) == 4


def test_dissection_finds_what_a_unit_was_made_to_see(asked, monkeypatch):
    """A layer whose unit 0 is the mask of the boats and unit 1 the place they are not at."""
    inspected, _ = asked("dissection", ("features.1",))
    images = inspected.images
    boat = images.categories.index("boat")
    masks = torch.from_numpy(np.stack([images.mask(i) & (images.labels[i] == boat) for i in range(len(images))]))
    planted = torch.stack([masks, torch.rand(masks.shape, generator=torch.Generator().manual_seed(0))], 1).float()
    monkeypatch.setattr("inquiry.layers.units.dissection.maps_of", lambda *_: planted)
    share = float(masks.float().mean())
    monkeypatch.setattr("inquiry.layers.units.dissection.TOP", share)
    _, table = asked("dissection", ("features.1",))
    assert table.iloc[0][["concept", "detects"]].tolist() == ["boat", True]
    assert table["agreement"].iloc[0] > 0.95
    assert not table["detects"].iloc[1]


def test_deletion_says_what_each_class_loses(asked):
    inspected, table = asked("deletion", ("features.0",))
    shown = torch.from_numpy(inspected.classes)
    expected = delete_units(inspected.classifier, inspected.inputs, shown, "features.0")
    assert len(table) == expected.drop.numel()
    np.testing.assert_allclose(table["drop"], expected.drop.flatten(), atol=1e-6)
    assert table["class"].iloc[0] == inspected.classifier.categories[int(expected.classes[0])]


def test_a_kill_and_the_same_command_again(tmp_path):
    """Files by the command; killed in the midst, it goes on and gives the same bytes as a run that was left alone."""
    words = ["layers", "deletion", "--setting", "size=48", "--layer", "features.1"]
    killed_and_whole(tmp_path, words, ["scenes.deletion.csv", "scenes.deletion.json"])


def test_another_network_is_compared_by_its_own_layers(tmp_path, monkeypatch):
    (tmp_path / "other.py").write_text(OTHER)
    monkeypatch.chdir(tmp_path)
    request = LayerQuery(
        "consistency", settings=SETTINGS, layers=("features.4",), other="other.py", other_layers=("1",)
    )
    csv, facts = inspect_files(request, tmp_path / "out")
    table = pd.read_csv(csv)
    assert 0.05 < table["inconsistent"].iloc[0] < 1
    assert json.loads(facts.read_text())["compared_with"] == "other"
    drawn = Image.open(tmp_path / "out" / "scenes.consistency.features.4_from_1.png")
    assert drawn.size == (6 * 160 + 5 * 4, 2 * 160 + 4)


def test_blind_spots_are_listed_by_image_the_largest_first():
    """Three held-out images of two by two places, by hand. Catches places dealt to another image or turned."""
    left = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.0, 2.0, 0.0, 0.0, 0.6, 0.6, 0.6, 0.6])
    found = Consistency(torch.zeros(1), torch.zeros(1), torch.tensor([*range(8, 12), *range(20, 28)]), left, left)
    listed = list_blind_spots(ComparedPair("a", "b", found, (2, 2)))
    assert [i for i, _ in listed] == [5, 6, 2]
    assert listed[0][1].tolist() == [[0.0, 2.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"question": "probe"}, "Did you mean 'probes'"),
        ({"question": "probes", "layers": ("features.9",)}, "scenes has no layer 'features.9'"),
        ({"question": "consistency", "layers": ("features.1",)}, "A layer is consistent with itself: give a second"),
        ({"question": "consistency", "layers": ("pool",), "other_layers": ("pool", "head")}, "compares pairs"),
        (
            {"question": "deletion", "settings": {"split": "standard", "size": 8}},
            r"two or more images of each class, and there is only 1 of (\w+(, )?)+ and 3 other classes\. Raise",
        ),
    ],
)
def test_wrong_input_is_one_sentence(changed, sentence, tmp_path):
    with pytest.raises(ForetellError, match=sentence):
        inspect_files(LayerQuery(**{"question": "probes", "settings": SETTINGS} | changed), tmp_path)


def test_dissection_needs_to_know_where_objects_are(tmp_path):
    images = open_set(ImageSource.model_validate({"set": "scenes", **SETTINGS}), None)
    for i, name in enumerate(("boat", "fish", "boat", "fish")):
        (tmp_path / "set" / name).mkdir(parents=True, exist_ok=True)
        images.open(i).save(tmp_path / "set" / name / f"{i}.png")
    request = LayerQuery("dissection", image_set="folder", settings={"path": str(tmp_path / "set")})
    with pytest.raises(ForetellError, match="does not record where its objects are"):
        inspect_files(request, tmp_path)
