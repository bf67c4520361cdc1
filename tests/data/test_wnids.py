"""The 1,000 ImageNet categories in class order."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from data.errors import DataError
from data.sets.wnids import WNID, imagenet_index, imagenet_names


def test_a_thousand_ids_in_their_order() -> None:
    """Class order is the order of the ids: the published property of the ILSVRC 2012 classifiers."""
    ids = list(imagenet_names())
    assert len(ids) == 1000
    assert all(WNID.fullmatch(wnid) for wnid in ids)
    assert ids == sorted(ids)


def test_names_tell_categories_apart() -> None:
    """WordNet calls two categories crane, two cardigan, two maillot: a participant could not choose between them."""
    assert len({name.lower() for name in imagenet_names().values()}) == 1000


@pytest.mark.parametrize(
    ("wnid", "index", "name"),
    [
        ("n01440764", 0, "tench"),
        ("n02123045", 281, "tabby"),
        ("n02504458", 386, "African elephant"),
        ("n15075141", 999, "toilet tissue"),
    ],
)
def test_known_indices(wnid: str, index: int, name: str) -> None:
    """Class numbers everyone knows from the ImageNet classifiers."""
    assert imagenet_index(wnid) == index
    assert imagenet_names()[wnid] == name


def test_an_unknown_id_is_refused() -> None:
    with pytest.raises(
        DataError, match="'n00000001' is not among the 1,000 ImageNet categories: name its folder in plain"
    ):
        imagenet_index("n00000001")


@pytest.mark.real
def test_indices_agree_with_real_photographs(real: Path) -> None:
    """184 photographs with the class number another source gave them."""
    with (real / "imagenet" / "index.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 184
    assert [imagenet_index(row["path"].split("/")[1]) for row in rows] == [int(row["class_index"]) for row in rows]
