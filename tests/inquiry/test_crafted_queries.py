"""The question attributes with crafted images: what is read of a held-out relative, how well, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn

from core.errors import ForetellError
from core.network.classifier import Classifier
from core.shares import share_of
from core.training.metamodel import MetamodelSettings, train_metamodels
from core.types import silent
from data.scenes.relatives import example
from data.scenes.relatives.networks import shrink
from data.scenes.relatives.outputs import load
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerInspection, LayerQuery
from inquiry.layers.question_files import draw_result
from inquiry.layers.training.attribute_queries import check_side
from inquiry.layers.training.attributes import compare_readings
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.inquiry.test_attributes import network as network


@pytest.fixture(scope="module")
def inspected(network) -> LayerInspection:
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 20}), None)
    return LayerInspection(network, images, LayerQuery("attributes"), network)


@pytest.fixture(scope="module")
def crafted(inspected) -> pd.DataFrame:
    return QUESTIONS["attributes"](inspected, silent, queries="crafted")


@pytest.fixture(scope="module")
def single(inspected) -> pd.DataFrame:
    return QUESTIONS["attributes"](inspected, silent, queries="single").set_index("attribute")


def test_a_held_out_relative_is_read_by_crafted_images(crafted) -> None:
    """Catches images of one metamodel that are given to another, and networks that are asked other images.

    Expected: the attributes by which the script trained it, where the metamodels are certain.
    """
    own = crafted[(crafted["output"] == "prob") & (crafted["probability"] > 0.9)].set_index("attribute")
    known = example.read_card()["example"]
    assert {"activation", "contexts"} <= set(own.index)
    assert own["predicted"].to_dict() == {name: known[name] for name in own.index}


def test_crafted_images_are_compared_with_plain_ones(inspected, crafted) -> None:
    """Against the question about the relatives' images, and the card's accuracy of crafted ones.

    Catches a comparison of other outputs or attributes, and relatives that are judged by images crafted with them.
    """
    plain, other = (
        QUESTIONS["attributes"](inspected, silent, queries=queries, epochs=2) for queries in ("images", "crafted")
    )
    assert other["by_images"].tolist() == pytest.approx(plain["accuracy"].tolist())
    assert other["gain"].tolist() == pytest.approx((other["accuracy"] - plain["accuracy"]).tolist())
    assert plain[["by_images", "gain"]].isna().all().all()
    every = crafted[crafted["attribute"] == "all"].set_index("output")
    assert list(every.index) == ["prob", "ranking", "bottom-1", "top-1"]
    assert (every["low"] > every["chance"]).all()
    card = example.read_card()["crafting"]["accuracy"]  # of what was not rounded, on another processor
    assert every["accuracy"].tolist() == pytest.approx([card[o]["crafted"] for o in every.index], abs=0.03)
    assert ((every["gain_low"] < every["gain"]) & (every["gain"] < every["gain_high"])).all()


def test_each_metamodel_is_asked_about_its_own_images(inspected) -> None:
    """Against the network on one image after the other, in the order of the parts. Catches images of other parts."""
    table = QUESTIONS["attributes"](inspected, silent, queries="crafted", outputs="prob", hidden=8, epochs=2)
    known, module = load(), example.build()
    own = known.crafted["prob"]
    folds, _, each, _ = own.outputs.shape
    rows = [
        torch.cat([module(example.transforms(own.open(fold * each + i))[None]).log_softmax(1)[0] for i in range(each)])
        for fold in range(folds)
    ]
    trained = train_metamodels(
        torch.from_numpy(own.outputs).flatten(2),
        torch.from_numpy(known.values),
        tuple(map(len, known.attributes.values())),
        MetamodelSettings(hidden=8, epochs=2),
        generator=torch.Generator().manual_seed(0),
        parts=torch.from_numpy(known.parts),
    )
    expected = [float(one.max()) for one in trained.predict(torch.stack(rows).clamp(min=known.floor))]
    assert table["probability"][1:].tolist() == pytest.approx(expected, rel=1e-2)


def test_gains_are_paired() -> None:
    """Closed form: of a thousand pairs with differences 1, 0 and -1, mean ± 1.96 standard errors."""
    crafted = np.array([1] * 700 + [0] * 300)
    plain = np.array([1] * 600 + [0] * 100 + [1] * 50 + [0] * 250)
    found = compare_readings(crafted, plain)
    deviation = np.array([0] * 600 + [1] * 100 + [-1] * 50 + [0] * 250).std(ddof=1)
    assert [found["by_images"], found["gain"]] == pytest.approx([0.65, 0.05])
    assert found["gain_low"] == pytest.approx(0.05 - 1.959964 * deviation / 1000**0.5)
    assert found["gain_high"] == pytest.approx(0.05 + 1.959964 * deviation / 1000**0.5)


def test_a_single_image_is_read_by_its_predicted_class(single) -> None:
    """Against the network itself, and counts of held-out relatives one by one.

    Catches images of another attribute, and relatives that are counted by another class or value.
    """
    known = load()
    pixels = torch.stack([torch.from_numpy(np.array(known.single.open(a))).permute(2, 0, 1) for a in range(11)])
    classes = example.build()(shrink(pixels)).argmax(1).tolist()
    for a, (name, names) in enumerate(known.attributes.items()):
        row, found = single.loc[name], known.single.predicted[:, a].tolist()
        right = [k == value for k, value in zip(found, known.values[:, a], strict=True)]
        assert [row["accuracy"], row["low"], row["high"]] == pytest.approx(share_of(sum(right), 400))
        if classes[a] >= len(names):
            assert pd.isna(row["predicted"])
            continue
        alike = [value for k, value in zip(found, known.values[:, a], strict=True) if k == classes[a]]
        assert row["predicted"] == names[classes[a]]
        assert row["probability"] == pytest.approx((alike.count(classes[a]) + 1) / (len(alike) + len(names)))


def test_a_single_image_discloses_more_than_chance(single) -> None:
    """Oh et al. 2018, table 2: 53% by one image, 35% by chance. Catches predictions of relatives that are mixed up."""
    assert single.loc["all", "low"] > single.loc["all", "chance"]
    assert single.loc["contexts", "low"] > 0.8
    assert set(single["output"]) == {"top-1"}


def test_a_class_that_is_no_value_is_said_to_tell_nothing(inspected) -> None:
    """A network that always predicts the last class, which no attribute has as a value."""
    constant = nn.Sequential(nn.Flatten(), nn.Linear(3 * 24 * 24, 16)).requires_grad_(False)
    constant[1].weight.zero_()
    constant[1].bias.copy_(torch.arange(16.0))
    network = Classifier(constant, example.transforms, example.CATEGORIES, name="constant")
    found = QUESTIONS["attributes"](replace(inspected, classifier=network), silent, queries="single", epochs=1)
    assert found["predicted"].isna().all()
    assert "nothing is known of: activation, pooling, layers" in found["note"].iloc[0]


def test_what_was_asked_is_drawn(inspected, network) -> None:
    """Catches images of another output or attribute, and a drawing of images that were not asked."""
    known = load()
    for queries, outputs, opened in (("single", "top-1", known.single), ("crafted", "prob", known.crafted["prob"])):
        own = replace(inspected, kept={})
        QUESTIONS["attributes"](own, silent, queries=queries, outputs=outputs, epochs=1)
        (image,) = draw_result(own).values()
        columns = (image.width + 4) // 100
        assert columns == (4 if queries == "single" else 20)
        assert np.array_equal(np.asarray(image)[:96, 200:296], np.asarray(opened.open(2)))
        assert np.array_equal(np.asarray(image)[100:196, 100:196], np.asarray(opened.open(columns + 1)))
    QUESTIONS["attributes"](own, silent, outputs="top-1", epochs=1)
    assert draw_result(own) == {}


def test_a_network_that_reads_other_sizes_is_refused(inspected) -> None:
    """Catches images that are blurred without a word; a multiple of their size shows them as they are."""

    def make(side: int) -> Classifier:
        def transforms(image: Image.Image) -> torch.Tensor:
            return example.transforms(image).repeat_interleave(2, 1).repeat_interleave(2, 2)[:, :side, :side]

        network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 16)).requires_grad_(False)
        return Classifier(network, transforms, example.CATEGORIES, name="sized")

    check_side(make(48), load())
    for queries in ("crafted", "single"):
        with pytest.raises(ForetellError, match=r"sized reads 32 x 32 px, which blurs crafted images of 24 x 24 px: a"):
            QUESTIONS["attributes"](replace(inspected, classifier=make(32)), silent, queries=queries)
    found = QUESTIONS["attributes"](replace(inspected, classifier=make(32)), silent, outputs="top-1", epochs=1)
    assert len(found) == 12


def test_outputs_for_which_no_images_were_crafted_are_refused(inspected) -> None:
    ask = QUESTIONS["attributes"]
    with pytest.raises(ForetellError, match="outputs='prob': queries=single were made for top-1 alone"):
        ask(inspected, silent, queries="single", outputs="prob")
