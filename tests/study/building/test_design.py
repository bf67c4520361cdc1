"""Trial selection on made-up answers, where every right choice can be seen."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.errors import ForetellError
from study.building.design import Material, candidates, chosen_categories, complete_categories, foil
from study.building.predictions import Predictions

NAMES = ("ant", "bee", "cat", "dog", "eel")
K = len(NAMES)


def answers(pairs, soft=None):
    """Predictions from (truth, predicted) pairs."""
    truth, predicted = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    mean = np.zeros((K, K)) if soft is None else soft
    unused = np.zeros(len(truth), dtype=np.float32)
    sure, nothing = np.full(len(truth), 0.9, dtype=np.float32), torch.zeros(0, 0)
    return Predictions(truth, predicted, sure, mean, nothing, unused, unused, nothing)


def accuracy_spread():
    """Class k is right in 10 - 2k of 10 standard pictures; its errors go to the next class."""
    return [(k, k if i < 10 - 2 * k else (k + 1) % K) for k in range(K) for i in range(10)]


POOL = [(k, k) for k in range(K) for _ in range(3)]
SHIFTED = [(k, (k + 2) % K) for k in range(K) for _ in range(2)]


def material(standard=None, pool=POOL, adversarial=SHIFTED, soft=None):
    return Material(NAMES, answers(pool), answers(standard or accuracy_spread(), soft), answers(adversarial))


def test_candidates_fit_their_type_and_carry_target_and_foil():
    m = material()
    wrong = candidates(m, 1, "std_incorrect")
    assert [(c.truth, c.target, c.alternative) for c in wrong] == [(1, 2, 1)] * 2
    shifted = candidates(m, 1, "adv_incorrect")
    assert [(c.role, c.truth, c.target, c.alternative) for c in shifted] == [("adversarial", 1, 3, 1)] * 2
    right = candidates(m, 1, "std_correct")
    assert len(right) == 8
    assert {(c.truth, c.target, c.alternative) for c in right} == {(1, 1, 2)}  # 2 of its 10 are called cat


def test_foil_is_the_most_confused_and_probabilities_break_ties():
    soft = np.zeros((K, K))
    soft[0, 3] = 0.2  # the probability of dog decides where the counts are all 0
    never_wrong = [(k, k) for k in range(K) for _ in range(4)]
    assert foil(material(never_wrong, soft=soft), 0) == 3
    assert foil(material([*never_wrong, (0, 4)], soft=soft), 0) == 4  # one real confusion outweighs it


def test_a_category_the_pool_cannot_teach_is_no_target_and_no_foil():
    without_cat = [(k, k) for k in range(K) if k != 2 for _ in range(3)] + [(2, 2), (2, 0)]
    m = material(pool=without_cat)  # one usable cat picture: the other is called ant
    assert not m.teachable[2]
    assert candidates(m, 1, "std_incorrect") == []  # bee's errors are called cat
    assert all(c.alternative != 2 for c in candidates(m, 1, "std_correct"))
    with pytest.raises(ForetellError, match="1, such as cat, have fewer than 2 pool pictures that the AI knows"):
        chosen_categories(m, 5, 1)


def test_categories_span_the_range_of_accuracy():
    """Class 0 is never wrong, so it has no std_incorrect; of the rest, least to most accurate: eel, dog, cat, bee."""
    m = material()
    assert complete_categories(m, 1).tolist() == [4, 3, 2, 1]
    assert chosen_categories(m, 2, 1) == [4, 1]
    assert chosen_categories(m, 3, 1)[0] == 4
    assert chosen_categories(m, ("bee", "Dog"), 1) == [1, 3]


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (5, r"trials.categories = 5, but only 4 categories have 1 picture\(s\) of every type .*1 lack std_incorrect"),
        (("fly",), "trials.categories names 'fly', which is no class"),
        (("ant",), "Category 'ant' has too few pictures of type std_incorrect"),
    ],
)
def test_what_cannot_be_had_is_named(wanted, text):
    with pytest.raises(ForetellError, match=text):
        chosen_categories(material(), wanted, 1)


def test_matched_on_truth():
    m = material()
    for category in chosen_categories(m, 3, 1):
        for trial_type in ("adv_incorrect", "std_incorrect", "std_correct"):
            assert {c.truth for c in candidates(m, category, trial_type)} == {category}
