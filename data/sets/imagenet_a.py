"""ImageNet-A: natural adversarial images of 200 ImageNet categories (Hendrycks et al. 2019, arXiv:1907.07174)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from data.sets.wnidtree import Published, load_tree
from data.types import ImageSet

TABLE = Path(__file__).with_name("imagenet_a_wnids.txt")
TOTAL = 7_500


@cache
def wnids() -> tuple[str, ...]:
    """Return the WordNet ids of the 200 categories, in class order."""
    return tuple(TABLE.read_text(encoding="utf-8").split())


def load(
    *, path: str | Path, partial: bool = False, progress: Callable[[int, int, str], None] | None = None
) -> ImageSet:
    """Load the folder ``imagenet-a`` as it is distributed: 200 folders named by WordNet id.

    ``partial`` takes what is there, however little.

    Raises
    ------
    DataError
        Names what is missing or misplaced.
    """
    return load_tree(Published("imagenet_a", wnids(), None, TOTAL), path, partial, progress)
