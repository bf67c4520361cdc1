"""Attributes of networks with values that no network learned from had, against planted outputs and the formula."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from core.errors import ForetellError
from core.training.metamodel import MetamodelSettings
from core.types import silent
from data.scenes.relatives.outputs import load
from data.types import Relatives
from inquiry.layers.training.attribute_splits import (
    Extrapolation,
    describe_extrapolation,
    draw_lessons,
    extrapolate,
)

SETTINGS = MetamodelSettings(hidden=20, epochs=30)


@pytest.fixture(scope="module")
def planted() -> Relatives:
    """Relatives with the attributes a, b and c, of two, two and three values.

    Outputs disclose b, and a if and only if c is not its last value: then their first number says the opposite of a.
    """
    generator = np.random.default_rng(0)
    values = np.stack([generator.integers(0, count, 240) for count in (2, 2, 3)], 1)
    log_p = generator.normal(-3, 0.1, (240, 1, 16)).astype(np.float32)
    sign = np.where(values[:, 2] == 2, -1, 1)
    log_p[:, 0, 0] += (sign * (2 * values[:, 0] - 1)).astype(np.float32)
    log_p[:, 0, 1] += 2 * values[:, 1].astype(np.float32)
    log_p[:, 0, 2] += 2 * (values[:, 2] == 2).astype(np.float32)
    names = {"a": ("0", "1"), "b": ("0", "1"), "c": ("0", "1", "2")}
    return replace(load(), attributes=names, values=values, log_p=log_p, order=np.argsort(-log_p, -1))


def test_what_an_unseen_value_turns_round_is_read_wrongly(planted: Relatives) -> None:
    """Planted: networks with c = 2 disclose the opposite of a, which no network of another value shows.

    Expected: a of these is read wrongly if their value is unseen and not if they are left out at random; b is read in
    either case. Catches parts that mix the values, and a control with other parts.
    """
    result = extrapolate(planted, "c", "prob", SETTINGS, torch.Generator().manual_seed(0), silent)
    last = planted.values[:, 2] == 2
    assert result.unseen[last, 0].mean() < 0.1
    assert result.at_random[last, 0].mean() > 0.85
    assert min(result.unseen[:, 1].mean(), result.at_random[:, 1].mean()) > 0.95
    assert not result.unseen[:, 2].any()
    assert (result.split, result.others) == ((2,), [0, 1])


def test_no_value_of_two_attributes_is_seen(planted: Relatives) -> None:
    """Planted as above: a of networks with c = 2 is the opposite of what those of every other c disclose.

    Expected: read wrongly where values of b and c are unseen, since no network with c = 2 teaches, whatever its b.
    Catches splits that leave out the one combination alone, or the values of the first attribute.
    """
    result = extrapolate(planted, "b, c", "prob", SETTINGS, torch.Generator().manual_seed(0), silent)
    last = planted.values[:, 2] == 2
    assert result.unseen[last, 0].mean() < 0.5
    assert result.at_random[last, 0].mean() > 0.75
    assert (result.split, result.others) == ((1, 2), [0])


def test_as_many_networks_teach_at_random() -> None:
    """Catches a control that learns from more networks, or from those that it is tested on."""
    parts = torch.arange(60) % 3
    sizes = torch.tensor([5, 40, 17])
    lessons = draw_lessons(parts, sizes, torch.Generator().manual_seed(0))
    assert lessons.sum(1).tolist() == sizes.tolist()
    assert not lessons[parts, torch.arange(60)].any()
    again = draw_lessons(parts, sizes, torch.Generator().manual_seed(1))
    assert not bool((lessons == again).all())


def test_the_columns_are_those_of_the_formula() -> None:
    """Expected by hand, of eight relatives and two attributes that do not split: equation 4 of Oh et al. 2018.

    Catches a splitting attribute that counts, another sign of the change, and chances of the wrong attribute.
    """
    unseen = np.array([[1, 0, 1], [1, 0, 1], [1, 0, 1], [1, 0, 1], [1, 0, 0], [1, 0, 1], [0, 0, 0], [0, 0, 0]], bool)
    at_random = np.ones((8, 3), bool)
    at_random[7] = False
    whole, first, split, last = describe_extrapolation(Extrapolation((1,), unseen, at_random), [0.5, 0.9, 0.25])
    assert set(split.values()) == {None}
    assert (first["unseen"], first["at_random"], first["change"]) == pytest.approx((6 / 8, 7 / 8, -1 / 8))
    assert first["kept"] == pytest.approx((0.75 - 0.5) / (0.875 - 0.5))
    assert last["kept"] == pytest.approx((5 / 8 - 0.25) / (7 / 8 - 0.25))
    assert whole["kept"] == pytest.approx((11 / 16 - 0.375) / (7 / 8 - 0.375))
    each = np.array([0, 0, 0, 0, -0.5, 0, -1, 0])
    half = 1.959964 * each.std(ddof=1) / 8**0.5
    assert (whole["change_low"], whole["change_high"]) == pytest.approx((each.mean() - half, each.mean() + half))


def test_a_share_of_nothing_above_chance_is_not_given() -> None:
    """Catches a normalised accuracy of thousands of percent where nothing was read in the first place."""
    correct = np.array([[1, 0], [0, 0]] * 20, bool)
    assert describe_extrapolation(Extrapolation((1,), correct, correct), [0.5, 0.5])[1]["kept"] is None


def test_what_cannot_be_left_out_is_one_sentence(planted: Relatives) -> None:
    """Catches a traceback in place of the sentence, and metamodels that learn from next to nothing."""
    few = replace(planted, **{name: getattr(planted, name)[:60] for name in ("values", "log_p", "order")})
    for known, text, message in (
        (planted, "a,d", r"unseen='a,d': 'd' is no attribute of the relatives. There are: a, b, c."),
        (planted, "c,b,a", r"unseen='c,b,a' leaves no attribute to read: name fewer."),
        (few, "a, c", r"unseen='a, c' leaves \d+ relatives to learn from, and 20 are needed: name fewer attributes."),
    ):
        with pytest.raises(ForetellError, match=message):
            extrapolate(known, text, "prob", SETTINGS, torch.Generator().manual_seed(0), silent)
