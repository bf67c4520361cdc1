"""The question explainer: its table and drawings on the scenes, by hand, and what it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import ttest_1samp

from core.errors import ForetellError
from core.layers.layers import compute_logits_with
from core.shares import share_of
from core.types import silent
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerInspection, LayerQuery
from inquiry.layers.record import record_of
from inquiry.layers.units.explainer import describe_features, estimate_difference, find_named_parts, warn_of
from inquiry.layers.units.explainer_drawings import JudgedExplainer, draw_explainer
from inquiry.layers.units.part_graph import find_landmarks
from study.network.sources import open_set
from study.plan.config import ImageSource
from tests.core.scenes import scene_net

SIZE, STEPS = 96, 30


@pytest.fixture(scope="module")
def inspected() -> LayerInspection:
    images = open_set(ImageSource.model_validate({"set": "scenes", "split": "standard", "size": SIZE}), None)
    network = scene_net()
    return LayerInspection(network, images, LayerQuery("explainer"), network)


@pytest.fixture(scope="module")
def table(inspected) -> pd.DataFrame:
    return QUESTIONS["explainer"](inspected, silent, steps=STEPS)


@pytest.fixture
def own(inspected, table) -> JudgedExplainer:
    found = inspected.kept["explainer"]
    assert isinstance(found, JudgedExplainer)
    return found


def test_features_are_steadier_than_channels_at_the_same_predictions(inspected, table, own) -> None:
    """Catches a restoration that is not of the held-out images, and unpaired or reversed differences."""
    first, each = table.iloc[0], table.iloc[1:]
    assert (first["feature"], first["images"], len(each)) == ("all", SIZE // 3, own.maps.shape[1])
    assert first["instability_less_high"] < 0
    differences = each["instability"] - each["instability_channel"]
    assert first["instability_less"] == pytest.approx(differences.mean())
    interval = ttest_1samp(differences.dropna(), 0).confidence_interval()
    assert (first["instability_less_low"], first["instability_less_high"]) == pytest.approx(tuple(interval))
    inputs = inspected.inputs[list(own.rows)]
    logits = compute_logits_with(inspected.classifier, inputs, own.layer, own.trained.restore(own.maps))
    count = int((logits.argmax(1) == inspected.classifier.logits(inputs).argmax(1)).sum())
    assert tuple(first[["same", "same_low", "same_high"]]) == pytest.approx(share_of(count, SIZE // 3))
    assert first["same"] > 0.8
    assert 0 < first["p"] < 1
    assert 0.5 < first["restored"] < 1


def test_a_feature_is_judged_on_the_images_to_which_its_channel_responds_most(inspected, table, own) -> None:
    """By hand for the first feature that is active. Catches the feature's own images, rows for columns, and a part
    that is not the most frequent.
    """
    k = int(table["images"].iloc[1:].astype(int).to_numpy().argmax())
    row, heights = table.iloc[k + 1], own.maps[:, k].amax((1, 2)).numpy()
    (parts, names), landmarks = find_named_parts(inspected, own.rows), find_landmarks(inspected, own.rows).numpy()
    chosen = [i for i in np.flatnonzero(heights >= np.quantile(heights, 0.75)) if own.features[i, k].max() > 0]
    assert row["images"] == len(chosen)
    for suffix, maps in (("", own.features), ("_channel", own.maps)):
        cells = [divmod(int(maps[i, k].argmax()), 6) for i in chosen]
        places = np.array([((x + 0.5) / 6, (y + 0.5) / 6) for y, x in cells])
        distances = np.linalg.norm(places[:, None] - landmarks[chosen], axis=2)
        assert row[f"instability{suffix}"] == pytest.approx(distances.std(0).mean())
        hits = [
            int(np.bincount(parts[i][16 * y : 16 * y + 16, 16 * x : 16 * x + 16].ravel()).argmax())
            for i, (y, x) in zip(chosen, cells, strict=True)
        ]
        assert row[f"purity{suffix}"] == pytest.approx(np.bincount(hits).max() / len(hits))
        assert suffix or row["part"] == names[int(np.bincount(hits).argmax())]


def test_sets_without_objects_or_parts_have_no_such_columns(own) -> None:
    """Catches an instability of 0 where nothing is known."""
    rows = describe_features(own, None, None)
    assert {name for row in rows for name in row} == {"feature", "images"}
    figure = record_of("explainer").figure(pd.DataFrame([{"feature": "all", "p": 0.5, "restored": 0.9, "same": 1.0,
                                                 "instability": None}]))  # fmt: skip
    assert list(figure.data[0].y) == [0.5, 0.9, 1.0]


def test_a_channel_and_its_feature_are_drawn(inspected, table, own) -> None:
    """Catches features that became less steady, and a sheet without one of the three rows."""
    drawn = draw_explainer(inspected)
    falls = (table["instability"] - table["instability_channel"]).iloc[1:].astype(float)
    expected = falls.nsmallest(3).index - 1
    assert list(drawn) == [f"channel {k}" for k in expected]
    assert {sheet.size for sheet in drawn.values()} == {(6 * 132 - 4, 3 * 128 + 8)}
    dots, line = record_of("explainer").figure(table).data
    shown = table.iloc[1:].dropna(subset=["instability"])
    assert list(dots.y) == shown["instability"].tolist()
    assert list(line.x) == list(line.y)


def test_weak_results_are_reported() -> None:
    """Catches a warning about a good result, and none about a bad one."""
    good = {"same": 0.99, "instability": 0.1, "instability_fixed": 0.11, "instability_less_high": -0.01,
            "purity_less_low": 0.01}  # fmt: skip
    assert warn_of(good) == []
    assert "After restoration 90% of the predictions are the same" in warn_of(good | {"same": 0.9})[0]
    assert "no steadier" in warn_of(good | {"instability_less_high": 0.0})[0]
    assert "a fixed place is as steady" in warn_of(good | {"instability": 0.11})[0]
    assert "one part more often" in warn_of(good | {"purity_less_low": -0.01})[0]
    assert warn_of({"same": 1.0, "feature": "all"}) == []
    assert np.isnan(estimate_difference(pd.Series([0.5]))[1:]).all()


@pytest.mark.parametrize(
    ("layers", "given", "message"),
    [
        (("features.4", "features.5"), {}, "of one layer, and features.4, features.5 are 2"),
        (("flatten",), {}, "4 or more places"),
        ((), {"unit": 500}, "unit=500: .* has the channels 0 to 127"),
        ((), {"eta": -1.0}, "eta=-1.0"),
    ],
)
def test_what_cannot_be_asked_is_refused(inspected, layers, given, message) -> None:
    other = LayerInspection(
        inspected.classifier, inspected.images, LayerQuery("explainer", layers=layers), inspected.classifier
    )
    other.__dict__["inputs"] = inspected.inputs  # already read
    with pytest.raises(ForetellError, match=message):
        QUESTIONS["explainer"](other, silent, **given)


def test_few_images_are_refused(inspected) -> None:
    few = LayerInspection(inspected.classifier, inspected.images.only(range(20)), LayerQuery("explainer"), scene_net())
    with pytest.raises(ForetellError, match="20 images are too few: give 40 or more"):
        QUESTIONS["explainer"](few, silent)


def test_the_drawn_unit_is_the_one_that_is_named(inspected) -> None:
    QUESTIONS["explainer"](inspected, silent, unit=5, steps=1)
    assert list(draw_explainer(inspected)) == ["channel 5"]
    assert torch.is_tensor(inspected.kept["explainer"].maps)
