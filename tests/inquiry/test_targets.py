"""The class that a command explains, found by its name: names with commas, numbers, and names of several classes."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

from core.errors import ForetellError
from core.network.classifier import Classifier
from inquiry.files.targets import find_class, resolve_target
from inquiry.units.units import UnitQuery, unit_of
from study.network.sources import match_classes

CLINIC = ("diabetic retinopathy, mild", "diabetic retinopathy, severe", "healthy")


def build_network(*names: str) -> Classifier:
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, len(names)))
    return Classifier(network, lambda _: torch.zeros(3, 8, 8), names, name="net")


def test_a_name_with_a_comma_is_a_name() -> None:
    """Catches "has no class" for a name as the network itself gives it, and the first of two that begin alike."""
    network = build_network(*CLINIC)
    assert [resolve_target(network, name) for name in (*CLINIC, "severe", "2", "top")] == [0, 1, 2, 1, 2, None]
    sentence = (
        "'diabetic retinopathy' could be 2 classes of net: 'diabetic retinopathy, mild', 'diabetic retinopathy, "
        "severe'. Give the whole name of one."
    )
    with pytest.raises(ForetellError, match=f"^{re.escape(sentence)}$"):
        find_class(network, "diabetic retinopathy")
    with pytest.raises(ForetellError, match=r"no class 'diabetic retinopathy, sever'\. Did you mean diabetic retinop"):
        find_class(network, "diabetic retinopathy, sever")


def test_an_exact_name_wins_over_an_index_and_other_numbers_are_refused() -> None:
    """Catches class "10" explained for `--target 2`, in explain, units and every other command that takes a class."""
    network = build_network("0", "1", "10", "2")
    assert resolve_target(network, "2") == 3
    assert resolve_target(network, 2) == 2, "a number of a program is an index"
    assert unit_of(network, UnitQuery("net", category="2")).channel == 3
    with pytest.raises(ForetellError, match=r"named by numbers and none is named 3, so it could be an index\. Give a"):
        find_class(network, "3")
    for wrong in ("7", "-1"):
        with pytest.raises(ForetellError, match=f"Target {wrong} is not a class of net: it has classes 0 to 2"):
            find_class(build_network("a", "b", "c"), wrong)
    with pytest.raises(ForetellError, match=r"Target -1 is not a class of net"):
        resolve_target(network, -1)


def test_folders_named_as_the_classes_match_and_so_do_their_short_names() -> None:
    """Catches images without a true class although their folders have the very names of the classes."""
    assert match_classes(CLINIC, CLINIC) == [0, 1, 2]
    assert match_classes(("Diabetic_retinopathy,  mild", "severe", "diabetic retinopathy"), CLINIC) == [0, 1, -1]
    assert match_classes(("Tinca_tinca", "tench"), ("tench, Tinca tinca", "shark")) == [0, 0]
