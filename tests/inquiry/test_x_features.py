"""The question x_features: its table, heatmaps and warnings against the scenes, whose factors are known."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from core.concepts.x_feature_measures import Faithfulness
from core.concepts.x_features import XFeatures, XFeatureSettings
from core.errors import ForetellError
from core.layers.layers import maps_of
from core.network.classifier import Classifier
from core.types import silent
from data.scenes import classifier as scenes
from inquiry.layers import QUESTIONS
from inquiry.layers.explanations import x_features as module
from inquiry.layers.explanations.x_feature_heatmaps import draw_x_features
from inquiry.layers.explanations.x_features import (
    JudgedFeatures,
    draw_heatmaps,
    measure_locality,
    measure_share_on_object,
    report_agreement,
    warn_of,
)
from inquiry.layers.inspection import LayerInspection, LayerQuery
from study.network.sources import open_classifier, open_set
from study.plan.config import ImageSource
from study.workspace.workspace import ROOT
from tests.core.scenes import scene_net


def inspect(network, size: int = 320) -> LayerInspection:
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": size}), None)
    return LayerInspection(network, images, LayerQuery("x_features"), network)


@pytest.fixture(scope="module", autouse=True)
def few_starts():
    """Half of the random starts: these networks' x-features are found from each of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "XFeatureSettings", partial(XFeatureSettings, starts=4))
        yield


@pytest.fixture
def few_steps(monkeypatch):
    """A rough fit, for what does not depend on the x-features."""
    monkeypatch.setattr(module, "XFeatureSettings", partial(XFeatureSettings, starts=2, steps=20))


@pytest.fixture(scope="module")
def inspected() -> LayerInspection:
    return inspect(scene_net())


@pytest.fixture(scope="module")
def table(inspected):
    return QUESTIONS["x_features"](inspected, silent, of="fish", features=2)


def test_the_table_is_about_held_out_images_of_the_class(inspected, table) -> None:
    """Catches numbers of fitted images, of another class, and heatmaps that belong to other images."""
    network, k = inspected.classifier, inspected.classifier.categories.index("fish")
    logits = network.logits(inspected.inputs)
    own = torch.nonzero(logits.argmax(1) == k)[:, 0].tolist()
    assert table["x_feature"].tolist() == ["all", "1", "2"]
    every = table.iloc[0]
    assert every["images"] == round(len(own) / 3) + round((320 - len(own)) / 3)
    assert every["explained"] > 0.9
    read = inspected.kept["x_features"]
    assert isinstance(read, JudgedFeatures)
    assert len(read.rows) == round(len(own) / 3)
    assert set(read.rows) < set(own)
    maps = maps_of(network, inspected.inputs[list(read.rows)], every["layer"])
    torch.testing.assert_close(read.maps, read.x_features.draw_maps(maps), rtol=1e-3, atol=1e-5)
    total = read.maps.sum((1, 2, 3)) + read.x_features.intercept
    assert float((total - logits[list(read.rows), k]).abs().mean()) < 1
    assert float(table["adds"].sum()) == pytest.approx(
        float(logits[own, k].mean() - logits[logits.argmax(1) != k, k].mean()), rel=0.25
    )


def test_the_share_on_the_object_is_of_what_the_network_sees() -> None:
    """Catches a mask of the whole image over a heatmap of its middle: even maps give the object's own area there."""
    cropped = Classifier(
        scenes.build(), lambda image: scenes.transforms(image.crop((24, 24, 72, 72))), scenes.CATEGORIES, name="cropped"
    )
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": 8}), None)
    inspected = LayerInspection(cropped, images, LayerQuery("x_features"), cropped)
    assert images.mask is not None
    expected = np.mean([images.mask(i)[24:72, 24:72].mean() for i in range(8)])
    assert abs(expected - np.mean([images.mask(i).mean() for i in range(8)])) > 0.02
    found = measure_share_on_object(inspected, range(8), torch.ones(8, 6, 6))
    assert found == pytest.approx(expected, abs=0.005)


def test_the_drawings_are_of_the_class(inspected, table) -> None:
    """Catches an x-feature without a drawing, and a row of another length."""
    drawn = draw_x_features(inspected)
    assert list(drawn) == ["x-feature 1", "x-feature 2"]
    count = min(6, len(inspected.kept["x_features"].rows))
    assert {image.size for image in drawn.values()} == {(count * 132 - 4, 260)}
    coloured = [np.asarray(image)[132:].astype(int) for image in drawn.values()]
    assert any((one.max(2) - one.min(2) > 40).any() for one in coloured)


@pytest.fixture(scope="module")
def blind():
    own = inspect(open_classifier("scenes:blind", ROOT))
    return own, QUESTIONS["x_features"](own, silent, of="fish", features=2)


def test_no_x_feature_of_the_blind_network_moves_with_the_context(table, blind) -> None:
    """Catches a factor that is not changed, or changed to its own value, and another network's x-features."""
    _, blind = blind
    assert table["do_context"].sum() > 2
    assert table["do_object"].sum() > 1
    assert abs(blind["do_context"]).max() < 0.1 * blind["do_object"].sum()
    assert blind["do_object"].sum() > 2


def test_low_fidelity_is_reported() -> None:
    """Catches a warning that needs all images to fail, a bound the wrong way round, and one for good x-features."""
    good, bad = Faithfulness(0.95, 0.1, 1), Faithfulness(0.3, 2, 0.5)
    assert warn_of(good, good, 20, "fish") is None
    assert "explain 30% of the variance of the logit of fish" in str(warn_of(bad, good, 20, "fish"))
    assert "explain 30% of the variance among held-out images" in str(warn_of(good, bad, 20, "fish"))
    assert "Only 3 held-out images" in str(warn_of(good, bad, 3, "fish"))
    assert str(warn_of(Faithfulness(float("nan"), 1, 1), good, 20, "fish")).startswith("Low fidelity")


def test_x_features_that_other_starts_do_not_find_are_reported() -> None:
    """Linear x-features that are rotated by 60 degrees have the correlation 1/2 with themselves, the third 1.

    Catches values without their weights, and a warning that replaces another.
    """
    z = torch.randn(60, 3, generator=torch.Generator().manual_seed(0)).double()
    z = torch.linalg.qr(z - z.mean(0)).Q
    turn = torch.tensor([[0.5, 3**0.5 / 2, 0], [-(3**0.5) / 2, 0.5, 0], [0, 0, 1.0]]).double()

    def plant(encoder: Tensor, weights: Tensor, rival: XFeatures | None = None) -> XFeatures:
        return XFeatures((encoder,), False, weights, 0.0, encoder.T, torch.zeros(3), torch.ones(3), 0.0, rival)

    rows: list[dict[str, object]] = [{"x_feature": str(i), "note": "known" if i == 2 else None} for i in (1, 2, 3)]
    weights = torch.tensor([1.0, 2, -1]).double()
    turned = plant(-turn, -weights)  # both signs changed: the same contributions
    report_agreement(rows, plant(torch.eye(3).double(), weights, turned), z)
    assert [row["agreement"] for row in rows] == pytest.approx([0.5, 0.5, 1])
    assert str(rows[0]["note"]).startswith("Other random starts find no such x-feature (correlation 0.50)")
    assert [row["note"] for row in rows[1:]] == ["known", None]
    report_agreement(rows, turned, z)


def test_locality_of_heatmaps() -> None:
    """Catches an entropy of the mean heatmap in place of the mean entropy, and images without evidence."""
    maps = torch.zeros(3, 8, 8)
    maps[0, :2, :2] = 1
    maps[1, 4:6, :4] = 1
    assert measure_locality(maps) == pytest.approx(np.log(2) / 2)
    assert measure_locality(torch.ones(2, 1, 1)) is None
    assert measure_locality(torch.zeros(2, 4, 4)) is None


def trace(inspected: LayerInspection, lowest: str = "") -> JudgedFeatures:
    read = inspected.kept["x_features"]
    maps = maps_of(inspected.classifier, inspected.inputs[list(read.rows)], "features")
    return draw_heatmaps(inspected, read.x_features, read.rows, maps, "features", "contrastive_excitation", lowest)


def test_excitation_shows_what_moves_an_x_feature(inspected, table, blind) -> None:
    """An x-feature that moves with the context is not on the object, and that of the blind network is.

    Expected of the interventions. Catches the losing places for the winning ones, and a heatmap by another layer.
    """
    shares = []
    for own, rows in ((inspected, table[1:]), blind):
        read = trace(own)
        assert (read.layer, read.maps.shape) == ("features.0", (len(read.rows), 2, 48, 48))
        strongest = int(rows["adds"].iloc[-2:].argmax())
        shares.append(
            (rows.iloc[-2:].iloc[strongest], measure_share_on_object(own, read.rows, read.weigh_places(strongest)))
        )
    (of_context, outside), (of_object, inside) = shares
    assert of_context["do_context"] > 2 * of_context["do_object"]
    assert abs(of_object["do_context"]) < 0.1 * of_object["do_object"]
    assert outside < 0.1
    assert inside > 0.5


def test_a_heatmap_is_positive_for_the_class(inspected, table) -> None:
    """Closed form at the x-features' own layer: shares of gradient times activation, with the sign of the weight.

    Catches an x-feature that lowers the logit, whose places would speak for the class.
    """
    read = trace(inspected, "features")
    maps = maps_of(inspected.classifier, inspected.inputs[list(read.rows)], "features").double()
    decoded = read.x_features
    assert (decoded.weights < 0).any()
    evidence = torch.einsum("ns,mshw->mnshw", decoded.layers[0], maps)
    share_for, share_against = (
        part.sum(2) / part.sum((2, 3, 4))[..., None, None] for part in (evidence.clamp(min=0), evidence.clamp(max=0))
    )
    there = (decoded.encode(maps.mean((2, 3))) > 0)[..., None, None]
    expected = torch.where(there, share_for - share_against, 0) * decoded.weights.sign()[:, None, None]
    torch.testing.assert_close(read.maps, expected, rtol=1e-3, atol=1e-6)


def test_a_layer_without_places_has_no_heatmap(inspected, few_steps) -> None:
    """But by excitation, as below it places are apart. Catches a heatmap of one colour where a layer has no places."""
    flat = LayerInspection(
        inspected.classifier,
        inspected.images,
        LayerQuery("x_features", layers=(_find_flat_layer(inspected),)),
        inspected.classifier,
    )
    found = QUESTIONS["x_features"](flat, silent, of="fish", features=1)
    assert found["locality"].isna().all()
    assert draw_x_features(flat) == {}
    traced = replace(flat, request=replace(flat.request, layers=("flatten",)))
    found = QUESTIONS["x_features"](traced, silent, of="fish", features=1, heatmap="contrastive_excitation")
    assert set(found["heatmap_layer"]) == {"features.0"}
    assert traced.kept["x_features"].maps.shape[2:] == (48, 48)
    assert list(draw_x_features(traced)) == ["x-feature 1"]


def _find_flat_layer(inspected: LayerInspection) -> str:
    names = [name for name, _ in inspected.classifier._module.named_modules() if name]
    return next(
        name
        for name in reversed(names)
        if maps_of(inspected.classifier, inspected.inputs[:2], name).shape[2:] == (1, 1)
    )


def test_what_cannot_be_asked_is_refused(inspected) -> None:
    """Catches too few images, a class that is not predicted, and two layers at once, which would be one ignored."""
    few = LayerInspection(inspected.classifier, inspected.images.only(range(9)), inspected.request, scene_net())
    with pytest.raises(ForetellError, match="9 images are too few: give 20 or more"):
        QUESTIONS["x_features"](few, silent)
    labels = inspected.images.labels
    no_boat = np.flatnonzero(labels != inspected.images.categories.index("boat"))[:30].tolist()
    none = LayerInspection(inspected.classifier, inspected.images.only(no_boat), inspected.request, scene_net())
    with pytest.raises(ForetellError, match="images are predicted to be boat: x-features compare 2 or more"):
        QUESTIONS["x_features"](none, silent, of="boat")
    two = LayerInspection(
        inspected.classifier, inspected.images, LayerQuery("x_features", layers=("features", "avgpool")), scene_net()
    )
    with pytest.raises(ForetellError, match="are of one layer"):
        QUESTIONS["x_features"](two, silent)
    with pytest.raises(ForetellError, match="features=0"):
        QUESTIONS["x_features"](inspected, silent, features=0)
    with pytest.raises(ForetellError, match=r"heatmap_layer=features\.0 is for heatmap=contrastive_"):
        QUESTIONS["x_features"](inspected, silent, heatmap_layer="features.0")


def test_a_network_without_rules_is_refused(few_steps) -> None:
    """A transformer normalises. Catches a heatmap that leaves its layer norms out."""
    transformer = inspect(open_classifier("scenes:vit", ROOT), 32)
    with pytest.raises(
        ForetellError, match=r"layer norm\), for which contrastive_excitation has no rule. Use gradient"
    ):
        QUESTIONS["x_features"](transformer, silent, features=1, heatmap="contrastive_excitation")
