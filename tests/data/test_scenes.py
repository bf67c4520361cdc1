"""Scenes as image sets: splits apart, opened lazily, one digest for one set."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, get_args

import numpy as np
import pytest

from data.errors import DataError
from data.scenes.generator import USUAL_SHARE
from data.scenes.shapes import CATEGORIES
from data.scenes.splits import Split, picture, scene_seed
from data.sets import scenes
from data.sets.scenes import SIZES, load
from data.types import ImageSet


def test_set_is_what_the_generator_draws() -> None:
    drawn = load(split="standard", size=40, seed=3)
    assert len(drawn) == 40
    assert drawn.categories == tuple(CATEGORIES)
    assert drawn.contexts is not None
    assert drawn.mask is not None
    for i in (0, 17, 39):
        scene = picture("standard", 3, i)
        assert drawn.open(i).tobytes() == scene.image.tobytes()
        assert drawn.categories[drawn.labels[i]] == scene.label
        assert drawn.contexts[i] == scene.context
        assert (drawn.mask(i) == scene.mask).all()


def test_what_a_caller_does_to_a_image_stays_with_him() -> None:
    """Catches a cache that hands out its own array or image."""
    drawn = load(split="pool", size=3)
    before = drawn.open(1).tobytes()
    drawn.open(1).putpixel((0, 0), (1, 2, 3))
    assert drawn.mask is not None
    drawn.mask(1)[:] = True
    assert drawn.open(1).tobytes() == before
    assert not drawn.mask(1).all()


def test_labels_are_balanced() -> None:
    counts = np.bincount(load(split="adversarial").labels)
    assert counts.tolist() == [SIZES["adversarial"] // len(CATEGORIES)] * len(CATEGORIES)


def test_no_two_images_share_an_integer() -> None:
    """The fields of the layout do not overlap, also at their limits."""
    corners = [(seed, index) for seed in (0, 1, 2**64 - 1) for index in (0, 1, 2**32 - 1)]
    numbers = [scene_seed(split, seed, index) for split in get_args(Split) for seed, index in corners]
    assert len(set(numbers)) == len(numbers)
    assert min(numbers) >= 2**32  # plain integers are free


def test_splits_share_no_image() -> None:
    shown = [picture(split, 0, i).image.tobytes() for split in get_args(Split) for i in range(16)]
    assert len(set(shown)) == len(shown)


def test_adversarial_contexts_are_never_usual_and_standard_nearly_always() -> None:
    for split, low, high in (("adversarial", 0.0, 0.0), ("standard", USUAL_SHARE - 0.016, USUAL_SHARE + 0.016)):
        drawn = load(split=split)  # type: ignore[arg-type]
        assert drawn.contexts is not None
        usual = [
            CATEGORIES[drawn.categories[k]].context == c for k, c in zip(drawn.labels, drawn.contexts, strict=True)
        ]
        assert low <= np.mean(usual) <= high  # 2,400 draws: four binomial standard errors are 0.016


def test_digest_is_the_same_in_another_process_and_differs_between_sets() -> None:
    code = "from data.sets.scenes import load; print(load(split='pool', size=5).digest)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    digests = [
        load(split="pool", size=5).digest,
        load(split="pool", size=6).digest,
        load(split="pool", size=5, seed=1).digest,
    ]
    assert run.stdout.strip() == digests[0]
    assert len({*digests, load(split="standard", size=5).digest}) == 4


def open_again(**options: Any) -> ImageSet:
    """Open a set as another process would, which has kept nothing."""
    scenes._open.cache_clear()
    scenes._draw.cache_clear()
    return load(**options)


def test_digest_covers_pixels_and_source(monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_again(split="pool", size=5).digest
    with monkeypatch.context() as patch:
        patch.setattr("data.scenes.generator.HAZE", np.float32(20))  # as another library would draw otherwise
        assert open_again(split="pool", size=5).digest != before
    with monkeypatch.context() as patch:
        patch.setattr(scenes, "_source", lambda: "another generator")
        assert open_again(split="pool", size=5).digest != before
    assert open_again(split="pool", size=5).digest == before


def test_who_opens_a_set_cannot_change_it_for_others() -> None:
    """Catches kept pixels, masks and labels that a caller writes into and the next one reads."""
    mine = load(split="pool", size=5)
    pixels, mask = np.asarray(mine.open(0)).copy(), mine.mask(0).copy()
    mine.open(0).paste((0, 0, 0), (0, 0, 96, 96))
    mine.mask(0)[:] = True
    with pytest.raises(ValueError, match="read-only"):
        mine.labels[:] = 0
    again = load(split="pool", size=9)
    assert (np.asarray(again.open(0)) == pixels).all()
    assert (again.mask(0) == mask).all()


def test_digest_reads_every_file_that_draws() -> None:
    """A renamed file would silently leave the digest."""
    for mark in (
        "class Pen",
        "def litter",
        "def meadow",
        "def compose",
        "def scene_seed",
        "def fish",
        "def boat",
        "CATEGORIES:",
    ):
        assert mark in scenes._source()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"split": "test"}, r"Unknown split 'test' of the scenes\. Known: pool, standard, adversarial\."),
        ({"split": "training"}, r"Unknown split 'training'"),
        ({"split": "pool", "size": 0}, r"A set of 0 scenes is empty: choose a size of at least 1\."),
        ({"split": "pool", "seed": -1}, r"Seed -1 or index 1199 does not fit"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object], text: str) -> None:
    with pytest.raises(DataError, match=text):
        load(**arguments)  # type: ignore[arg-type]


def test_an_index_past_the_end_is_refused() -> None:
    """`zip` and `for` over a set must end; a generator could go on for ever."""
    with pytest.raises(IndexError):
        load(split="pool", size=3).open(3)
