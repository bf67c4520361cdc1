"""The question parts: its table and drawings against the scenes, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import ImageColor

from core.concepts.explanatory_graph import (
    GraphSettings,
    compute_likelihoods,
    find_parts,
    list_places,
    normalise_activations,
)
from core.errors import ForetellError
from core.layers.layers import maps_of
from core.types import silent
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerInspection, LayerQuery
from inquiry.layers.record import record_of
from inquiry.layers.units.learned_parts import COLOURS, draw_parts
from inquiry.layers.units.part_graph import describe_layer, find_landmarks, warn_of
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.core.scenes import scene_net


@pytest.fixture(scope="module")
def inspected() -> LayerInspection:
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 160}), None)
    network = scene_net()
    return LayerInspection(network, images, LayerQuery("parts", layers=("features.4", "features.3")), network)


@pytest.fixture(scope="module")
def table(inspected) -> pd.DataFrame:
    return QUESTIONS["parts"](inspected, silent, of="fish", channels=3, sweeps=3)


def test_the_table_is_about_held_out_images_from_the_top_layer_down(inspected, table) -> None:
    """Catches layers in the order in which they were named, numbers of fitted images, and parents of another layer."""
    assert table["layer"].tolist() == ["features.4"] * 7 + ["features.3"] * 7
    top, below = table.iloc[:7], table.iloc[7:]
    logits = inspected.classifier.logits(inspected.inputs)
    own = torch.nonzero(logits.argmax(1) == inspected.classifier.categories.index("fish"))[:, 0].tolist()
    assert (table.loc[table["part"] == "all", "images"] == round(len(own) / 3)).all()
    read = inspected.kept["parts"]
    assert set(read[0].rows) == set(read[1].rows) < set(own)
    maps = maps_of(inspected.classifier, inspected.inputs[list(read[1].rows)], "features.3")
    torch.testing.assert_close(read[1].maps, maps[:, list(read[1].channels)], rtol=1e-3, atol=1e-5)
    assert set(top["goes_with"].dropna()) == {""}
    named = {name for names in below["goes_with"].dropna() for name in names.split(", ") if name}
    assert named <= set(top["part"])
    parts = table[table["part"] != "all"]
    assert parts[["x", "y", "share"]].stack().between(0, 1).all()
    by_channel = parts.groupby(["layer", parts["part"].str.split(".").str[0]])["share"].sum()
    assert (by_channel <= 1 + 1e-9).all()


def test_the_gain_is_what_the_layer_above_adds(inspected, table) -> None:
    """Catches the fitted images, the places of the layer above in other images, and a gain of the top layer."""
    top, below = inspected.kept["parts"]
    whole = table[table["part"] == "all"].set_index("layer")
    assert np.isnan(whole.loc["features.4", "gain"])
    activations, places = normalise_activations(below.maps), list_places(*below.maps.shape[2:])
    found = find_parts(top.graph, top.maps, None)
    means = [
        float(compute_likelihoods(graph, activations, places, above).sum() / activations.sum())
        for graph, above in ((below.graph, found), (below.alone, None))
    ]
    row = whole.loc["features.3"]
    assert (row["log_p"], row["gain"]) == pytest.approx((means[0], means[0] - means[1]))
    assert row["gain_error"] > 0


def test_steadiness_is_of_the_images_in_which_the_channel_responds(inspected, table) -> None:
    """By hand for the channel's maximum. Catches images without activation, whose maximum would be a corner."""
    (own, _), landmarks = inspected.kept["parts"], find_landmarks(inspected, inspected.kept["parts"][0].rows)
    one = replace(own, maps=own.maps.clone())
    one.maps[0, 0] = 0
    height, width = one.maps.shape[2:]
    distances = []
    for i in range(1, len(one.rows)):
        y, x = divmod(int(one.maps[i, 0].argmax()), width)
        place = np.array([x + 0.5, y + 0.5]) / max(height, width)
        distances.append(np.linalg.norm(landmarks[i].numpy() - place, axis=1))
    row = describe_layer(one, landmarks)[1]
    assert row["images"] == len(one.rows) - 1
    assert row["instability_maximum"] == pytest.approx(np.std(distances, axis=0).mean())
    fixed = np.linalg.norm(landmarks[1:].numpy() - one.graph.usual[0].numpy(), axis=2)
    assert row["instability_fixed"] == pytest.approx(fixed.std(0).mean())


def judge(gain: tuple[float, float] = (0.024, 0.01), reached=(0.5, 0.5005), steady=(0.1, 0.11)) -> str:
    """What is said of a layer under another one, by 9 images."""
    graph = SimpleNamespace(likelihood=reached, settings=GraphSettings())
    own = SimpleNamespace(name="lower", upper=SimpleNamespace(name="upper"), gain=gain, rows=range(9), graph=graph)
    return " ".join(warn_of(own, pd.DataFrame({"instability": [steady[0]], "instability_fixed": [steady[1]]})))


def test_weak_results_are_reported() -> None:
    """t with 8 degrees of freedom: 2.306. Catches any gain above 0 as a finding, and the normal 1.96."""
    assert judge() == ""
    assert "the parts of upper do not tell where those of lower are: the gain is 0.0220 nats" in judge((0.022, 0.01))
    assert "do not tell" in judge((-0.5, 0.01))
    assert "do not tell" in judge((0.5, math.nan))
    assert "lower has not converged: take more than 30 sweeps" in judge(reached=(0.5, 0.502))
    assert "has not converged" in judge(reached=(0.5,))
    assert "fixed places are as steady on it (instability 0.110 against 0.120)" in judge(steady=(0.12, 0.11))
    assert judge(steady=(math.nan, math.nan)) == ""


def test_every_layer_is_drawn(inspected, table) -> None:
    """Catches dots at (y, x), of other images, and of the smaller part of a channel."""
    drawn = draw_parts(inspected)
    assert list(drawn) == ["features.4", "features.3"]
    for own in inspected.kept["parts"]:
        sheet, shares = drawn[own.name], table[table["layer"] == own.name]["share"].iloc[-2:].tolist()
        assert sheet.size == (164 * min(6, len(own.rows)) - 4, 160)
        last = 4 + int(shares[1] > shares[0])  # the largest part of the channel that is drawn over the others
        for at in range(min(6, len(own.rows))):
            x, y = (160 * own.found_parts.places[at, last]).tolist()
            assert sheet.getpixel((164 * at + int(x), int(y))) == ImageColor.getrgb(COLOURS[2])
    bars = record_of("parts").figure(table).data
    assert [list(bar.y) for bar in bars] == [table["share"].iloc[1:7].tolist(), table["share"].iloc[8:].tolist()]


def test_landmarks_are_the_centre_and_the_corners(inspected) -> None:
    (found,) = find_landmarks(inspected, [3]).tolist()
    y, x = np.nonzero(np.asarray(inspected.images.mask(3)))
    assert found[1] == pytest.approx([(x.min() + 0.5) / 96, (y.min() + 0.5) / 96])
    assert found[4] == pytest.approx([(x.max() + 0.5) / 96, (y.max() + 0.5) / 96])


@pytest.mark.parametrize(
    ("layers", "given", "message"),
    [
        ((), {"of": "dragon"}, "dragon"),
        ((), {"of": "fish", "channels": 0}, "channels=0: choose 1 or more"),
        ((), {"of": "fish", "parts": 0}, "parts=0"),
        (("flatten",), {"of": "fish"}, "flatten keeps 1 apart: name layers with 4 or more"),
    ],
)
def test_what_cannot_be_asked_is_refused(inspected, layers, given, message) -> None:
    other = LayerInspection(
        inspected.classifier, inspected.images, LayerQuery("parts", layers=layers), inspected.classifier
    )
    other.__dict__["inputs"] = inspected.inputs  # already read
    with pytest.raises(ForetellError, match=message):
        QUESTIONS["parts"](other, silent, **given)


def test_few_images_of_the_class_are_refused(inspected) -> None:
    few = LayerInspection(inspected.classifier, inspected.images.only(range(40)), LayerQuery("parts"), scene_net())
    with pytest.raises(ForetellError, match="12 or more images that are predicted to be of one class"):
        QUESTIONS["parts"](few, silent, of="fish")
