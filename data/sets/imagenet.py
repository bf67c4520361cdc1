"""ImageNet (ILSVRC 2012) in the folders of its 1,000 categories: the user's own copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from data.errors import DataError
from data.sets.wnids import imagenet_names
from data.sets.wnidtree import Published, load_tree
from data.types import ImageSet

IMAGE_COUNTS: dict[str, tuple[int | None, int]] = {"val": (50, 50_000), "train": (None, 1_281_167)}
"""Images of each category, and of all; the training set has 732 to 1,300 a category."""


def load(
    *,
    path: str | Path,
    part: Literal["val", "train"] = "val",
    partial: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> ImageSet:
    """Load the validation (or training) images in ``path/<WordNet id>/``.

    Parameters
    ----------
    path
        The folder that holds the 1,000 category folders.
    part
        Which part it is: its numbers of images are checked.
    partial
        Take what is there, however little.

    Raises
    ------
    DataError
        Names what is missing or misplaced.
    """
    if part not in IMAGE_COUNTS:
        raise DataError(f"ImageNet has no part {part!r}: use {' or '.join(IMAGE_COUNTS)}.")
    each, total = IMAGE_COUNTS[part]
    return load_tree(Published(f"imagenet/{part}", tuple(imagenet_names()), each, total), path, partial, progress)
