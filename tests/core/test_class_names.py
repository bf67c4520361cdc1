"""Names of classes: a comma that separates synonyms, one that belongs to the name, and names that several share."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from core.class_names import ClassNames, is_imagenet, number_repeated_names
from core.errors import ForetellError
from core.network.classifier import Classifier

IMAGENET = ("tench, Tinca tinca", "Cardigan, Cardigan Welsh corgi", "cardigan", "maillot", "maillot, tank suit")
CLINIC = ("diabetic retinopathy, mild", "diabetic retinopathy, severe", "healthy_eye, no finding")


def test_a_name_is_short_only_where_no_other_class_has_it() -> None:
    """Catches two options of a trial that are the same word: the names are those of timm and of a clinic."""
    shown = ("tench", "Cardigan, Cardigan Welsh corgi", "cardigan", "maillot", "maillot, tank suit")
    assert ClassNames(IMAGENET).short == shown
    assert ClassNames(CLINIC).short == (*CLINIC[:2], "healthy eye")
    assert ClassNames((", a", "b")).short == (", a", "b")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("maillot", (3,)),
        ("maillot, tank suit", (4,)),
        ("Tank_Suit", (4,)),
        ("Tinca tinca", (0,)),
        ("TENCH", (0,)),
        ("cardigan", (2,)),
        ("Cardigan", (1,)),
        ("shark", ()),
        ("", ()),
    ],
)
def test_a_whole_name_counts_more_than_a_part_of_another(name: str, meant: tuple[int, ...]) -> None:
    """Catches the garment that means the dog, which is the first of that name in any case."""
    assert ClassNames(IMAGENET).find(name) == meant


def test_a_part_that_several_classes_have_is_none_of_them() -> None:
    """Catches the mild disease explained where the severe one is as near."""
    assert ClassNames(CLINIC).find("diabetic retinopathy") == (0, 1)
    assert ClassNames(("giant panda, panda", "lesser panda, panda")).find("panda") == (0, 1)
    assert ClassNames(("bathtub, tub", "tub, vat")).find("tub") == (1,), "the first part is the name, others are not"


def test_a_number_is_an_index_only_where_no_class_is_named_by_one() -> None:
    """Catches `--target 2` that explains class "10", the third in the order of folders."""
    digits = ClassNames(("0", "1", "10", "2"))
    assert [digits.find_numbered(name) for name in ("2", "10", "3")] == [(3,), (2,), ()]
    assert ClassNames(IMAGENET).find_numbered("2") == (2,)
    assert ClassNames(IMAGENET).find_numbered("5") == ()
    assert ClassNames(("3, three", "7, seven")).find_numbered("0") == ()


@pytest.mark.parametrize("names", [("crane", "crane", "Boat"), ("red_fox", "dog", "red fox")])
def test_two_classes_of_one_name_are_refused(names: tuple[str, ...]) -> None:
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 3))
    with pytest.raises(ForetellError, match=r"^net has two classes named '(crane|red fox)'\. Give each class a name"):
        Classifier(network, lambda _: torch.zeros(3, 8, 8), names, name="net")
    Classifier(network, lambda _: torch.zeros(3, 8, 8), ("Boat", "boat", "crane"), name="net")


def test_repeated_names_of_a_library_are_numbered() -> None:
    """Catches a pretrained network of ImageNet that is refused, since its library calls two classes crane."""
    assert number_repeated_names(("crane", "dog", "crane")) == ["crane (0)", "dog", "crane (2)"]


def test_the_cranes_of_imagenet_are_told_apart_and_other_repeated_names_are_not() -> None:
    """Catches a network with ImageNet's names, which call two classes crane, that is refused."""
    names = [f"name {k}" for k in range(1000)]
    names[134] = names[517] = "crane"
    assert is_imagenet(names)
    assert [name for name in number_repeated_names(names) if "crane" in name] == ["crane (134)", "crane (517)"]
    names[1] = names[0]
    assert not is_imagenet(names)
    assert not is_imagenet(["crane", "crane"])
