"""Integers of images: the one module that keeps the sets of scenes disjoint.

Image ``index`` of the set (split, set seed) is the scene of the integer::

    split << 96 | set seed << 32 | index          index < 2**32, set seed < 2**64

so no two sets share an image, whatever their seeds and sizes, and a larger set begins with the smaller one. Plain
integers below 2**32 (split 0, set seed 0) belong to no set. Categories take turns, so every set is balanced.
"""

from __future__ import annotations

from typing import Literal

from data.errors import DataError
from data.scenes.generator import USUAL_SHARE, Scene, choose, render
from data.scenes.shapes import CATEGORIES

Split = Literal["pool", "standard", "adversarial", "training"]

SPLITS: dict[str, int] = {"pool": 1, "standard": 2, "adversarial": 3, "training": 4}


def scene_seed(split: Split, seed: int, index: int) -> int:
    """The integer of an image, different for every (split, seed, index).

    Raises
    ------
    DataError
        Unknown split, or a seed or index that does not fit its field.
    """
    if split not in SPLITS:
        raise DataError(f"Unknown split {split!r} of the scenes. Known: {', '.join(SPLITS)}.")
    if not 0 <= seed < 2**64 or not 0 <= index < 2**32:
        raise DataError(f"Seed {seed} or index {index} does not fit: choose 0 <= seed < 2**64 and 0 <= index < 2**32.")
    return SPLITS[split] << 96 | seed << 32 | index


def label_of(index: int) -> int:
    """Index of the category of image ``index`` of any set."""
    return index % len(CATEGORIES)


def context_of(split: Split, seed: int, index: int) -> str:
    """Name of the context of an image, without drawing it."""
    return choose(scene_seed(split, seed, index), category=_category(index), usual_share=_share(split))[1]


def draw_scene(split: Split, seed: int, index: int) -> Scene:
    """Draw one image of a set."""
    return render(scene_seed(split, seed, index), category=_category(index), usual_share=_share(split))


def _category(index: int) -> str:
    return list(CATEGORIES)[label_of(index)]


def _share(split: Split) -> float:
    """All contexts are shifted in ``adversarial``, nearly all usual in the others."""
    return 0.0 if split == "adversarial" else USUAL_SHARE
