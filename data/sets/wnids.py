"""The 1,000 ImageNet categories in the order of a classifier's outputs: WordNet id and plain name.

``imagenet_wnids.txt`` has one line a category. A name is the first synonym in WordNet; where two categories share it
(crane, cardigan, maillot) one or both carry another of their names.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from data.errors import DataError

TABLE = Path(__file__).with_name("imagenet_wnids.txt")
WNID = re.compile(r"n\d{8}")


@cache
def imagenet_names() -> dict[str, str]:
    """Return the plain name of each WordNet id, in class order."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines}


@cache
def _indices() -> dict[str, int]:
    return {wnid: index for index, wnid in enumerate(imagenet_names())}


def imagenet_index(wnid: str) -> int:
    """Return the index of a category among the 1,000 outputs of an ImageNet classifier.

    Raises
    ------
    DataError
        The id is not one of the 1,000.
    """
    try:
        return _indices()[wnid]
    except KeyError:
        raise DataError(
            f"{wnid!r} is not among the 1,000 ImageNet categories: name its folder in plain words, or leave it out."
        ) from None
