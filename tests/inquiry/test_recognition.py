"""The question recognition: planted sets of which the answer is known, its numbers, its warnings and refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from core.errors import ForetellError
from core.types import silent
from data.types import ImageSet
from inquiry.layers import QUESTIONS
from inquiry.layers.images.recognition import split_images, warn_of_random
from inquiry.layers.inspection import LayerInspection, LayerQuery
from tests.core.scenes import scene_net

SIDE, PATCH = 24, 10
GIVEN = {"filters": "6", "images": 60, "learned": 20, "side": SIDE, "size": 3, "epochs": 1, "words": 20, "levels": 2}
Draw = Callable[[int, int, np.random.Generator], np.ndarray]


def draw_place(label: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """The same stripes, either way round, in one of four quarters, away from the margin: the class is the quarter."""
    stripes = np.indices((8, 8))[k % 2] // 2 % 2
    pixels = np.full((44, 44), 0.5)
    top, left = (10 + 2 * int(rng.integers(0, 2)) + 14 * far for far in divmod(label, 2))
    pixels[top : top + 8, left : left + 8] = stripes
    return pixels


def draw_content(label: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Stripes anywhere: the class is their direction, and their width."""
    stripes = np.indices((PATCH, PATCH))[label % 2] // (1 + label // 2) % 2
    pixels = np.full((SIDE, SIDE), 0.5)
    top, left = rng.integers(0, SIDE - PATCH + 1, 2)
    pixels[top : top + PATCH, left : left + PATCH] = stripes
    return pixels


def make_set(draw: Draw, count: int = 60, classes: int = 4, shuffled: bool = False) -> ImageSet:
    rng = np.random.default_rng(0)
    labels = np.arange(count) % classes
    drawn = [draw(int(label), k // classes, rng) + rng.normal(0, 0.01, (1, 1)) for k, label in enumerate(labels)]
    images = [Image.fromarray((255 * one.clip(0, 1)).astype(np.uint8)).convert("RGB") for one in drawn]
    told = rng.permutation(labels) if shuffled else labels
    ids, names = tuple(map(str, range(count))), tuple(f"class {k}" for k in range(classes))
    return ImageSet("planted", names, told, ids, images.__getitem__, "0" * 64)


def inspect(images: ImageSet, seed: int = 0) -> LayerInspection:
    network = scene_net()
    return LayerInspection(network, images, LayerQuery("recognition", seed=seed), network)


def ask(image_set: ImageSet, /, **given: object) -> pd.DataFrame:
    return QUESTIONS["recognition"](inspect(image_set), silent, **(GIVEN | given)).set_index("features")


def test_what_only_the_position_tells_is_recognised_with_the_pyramid_alone() -> None:
    """Planted: the same stripes in four quarters. Catches cells that are not cells, and words counted with places."""
    table = ask(make_set(draw_place), side=44)
    for features in ("layer 1", "patches of pixels"):
        row = table.loc[features]
        assert row["accuracy"] > 0.9
        assert row["without_pyramid"] < 0.6
        assert row["position_low"] > 0.1
    assert table.loc["layer 1", "images"] == 20
    assert table["chance"].tolist() == pytest.approx([0.25] * 3)


def test_what_the_content_tells_is_recognised_without_the_pyramid() -> None:
    """Planted: stripes of four kinds anywhere, through both layers. Catches a kernel of other images, and labels of

    other images.
    """
    table = ask(make_set(draw_content), filters="6,4", parts=4)
    assert list(table.index) == ["layer 1", "layer 2", "all layers", "patches of pixels", "pixels"]
    assert (table.loc[["layer 1", "all layers"], "without_pyramid"] > 0.8).all()
    assert table.loc["layer 2", "low"] > 0.25
    assert table.loc["pixels", "accuracy"] < table.loc["layer 1", "accuracy"]
    gains = table["accuracy"] - table["random"]
    assert gains.dropna().tolist() == pytest.approx(table["learning"].dropna().tolist())
    assert (table["accuracy"] - table["without_pyramid"]).dropna().tolist() == pytest.approx(
        table["position"].dropna().tolist()
    )
    assert table["learning"].notna().tolist() == [True] * 3 + [False] * 2
    for _, row in table.dropna(subset=["learning"]).iterrows():
        assert ("no better than random ones" in str(row["note"])) == (row["learning_low"] <= 0)


def test_shuffled_labels_are_recognised_at_chance() -> None:
    """Catches held-out images among those that are learned from."""
    table = ask(make_set(draw_content, shuffled=True), levels=1)
    assert (table["accuracy"] < 0.6).all()
    assert table["without_pyramid"].isna().all()
    low = table["low"] <= table["chance"]
    assert low.any()
    assert [("no better than by chance (25.0%)" in str(note)) for note in table["note"]] == low.tolist()


def test_a_third_of_each_class_is_held_out() -> None:
    """Catches classes that are learned from or judged by alone, and labels in another order than the images."""
    images = make_set(draw_content, count=45, classes=3)
    shown = split_images(inspect(images), 45, SIDE)
    assert np.bincount(shown.labels[: shown.training]).tolist() == [10] * 3
    assert np.bincount(shown.held_out).tolist() == [5] * 3
    pixels = [np.asarray(images.open(k), dtype=float)[..., 0] / 255 for k in range(45)]
    for place in (0, 20, 44):
        near = [np.corrcoef(shown.contrast[place, 0].numpy().ravel(), one.ravel())[0, 1] for one in pixels]
        assert images.labels[int(np.argmax(near))] == shown.labels[place]
    assert not np.array_equal(split_images(inspect(images, 1), 45, SIDE).contrast, shown.contrast)


def test_the_same_seed_gives_the_same_table() -> None:
    """Catches a draw from the process's own generator."""
    one, two = (ask(make_set(draw_content, count=24), filters="3", levels=1) for _ in range(2))
    pd.testing.assert_frame_equal(one, two)


def test_a_warning_has_both_accuracies() -> None:
    assert "learned filters of layer 2 recognise" in warn_of_random("layer 2", 0.5, 0.52)
    assert "(50.0% against 52.0%)" in warn_of_random("layer 2", 0.5, 0.52)


@pytest.mark.parametrize(
    ("images", "given", "message"),
    [
        (make_set(draw_content, classes=1), {}, "Images of one class alone"),
        (make_set(draw_content, count=23), {}, "5 images of class 3 among the 23 drawn are too few"),
        (make_set(draw_content), {"images": 12}, "among the 12 drawn are too few"),
        (make_set(draw_content), {"words": 0}, "words=0: give a whole number"),
        (make_set(draw_content), {"levels": 0}, "levels=0"),
        (make_set(draw_content), {"levels": 7}, "levels=7: choose at most"),
        (make_set(draw_content), {"filters": "4;2"}, "filters='4;2'"),
        (make_set(draw_content), {"side": 4}, "side=4: choose 8 px or more"),
    ],
)
def test_what_cannot_be_learned_is_refused(images: ImageSet, given: dict[str, object], message: str) -> None:
    with pytest.raises(ForetellError, match=message):
        ask(images, **given)
