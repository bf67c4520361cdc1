"""Trial selection on made-up answers, where every right choice can be seen."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.errors import ForetellError
from study.building.candidates import SetPredictions, candidates, foil
from study.building.categories import CategoryShortage, Supply, choose_categories, largest_study
from study.network.predictions import Predictions

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
    return SetPredictions(NAMES, answers(pool), answers(standard or accuracy_spread(), soft), answers(adversarial))


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
    with pytest.raises(ForetellError, match=r"; cat \(1 correctly classified pool image\); ant \("):
        choose_categories(m, 5, 1)


def test_categories_span_the_range_of_accuracy():
    """Class 0 is never wrong, so it has no std_incorrect; of the rest, least to most accurate: eel, dog, cat, bee."""
    m = material()
    assert Supply(m, 1).complete.tolist() == [4, 3, 2, 1]
    assert choose_categories(m, 2, 1) == [4, 1]
    assert choose_categories(m, 3, 1)[0] == 4
    assert choose_categories(m, ("bee", "Dog"), 1) == [1, 3]


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (5, "You ask for 5 categories, but the images allow only 4: each needs 2 pool images"),
        (("fly",), "trials.categories names 'fly', which is not a class of the network.$"),
        (("Beee",), "'Beee', which is not a class of the network. Did you mean 'bee'?"),
        (("ant",), "Category 'ant' has too few images. Missing: 1 misclassified standard image"),
    ],
)
def test_what_cannot_be_had_is_named(wanted, text):
    with pytest.raises(ForetellError, match=text):
        choose_categories(material(), wanted, 1)


def test_the_largest_study_has_the_most_trials(monkeypatch):
    """Catches the largest number of trials that is left out between the most categories and the most images."""
    fits = [(15, 1), (12, 2), (7, 3), (1, 9)]
    monkeypatch.setattr(Supply, "largest", lambda _: fits)
    assert largest_study(Supply(material(), 1)) == (
        "Largest study that fits: 12 categories with 2 images per trial type (72 trials). Others that fit: "
        "15 categories with 1 image per trial type (45 trials); 1 category with 9 images per trial type (27 trials)."
    )


def test_everything_in_the_way_is_said_at_once():
    """All wrong names in one message; a count too large with the table, the largest study and the images to add."""
    with pytest.raises(ForetellError) as names:
        choose_categories(material(), ("fly", "ant", "bee"), 1)
    assert len(str(names.value).split("\n")) == 2
    with pytest.raises(ForetellError) as shortage:
        choose_categories(material(), 5, 3)
    lines = str(shortage.value).split("\n")
    assert lines[0].startswith("You ask for 5 categories, but the images allow none: each needs")
    rows = {line.split()[0]: [int(cell) for cell in line.split()[1:]] for line in lines[2:7]}
    # Of class k: 3 in the pool, 2 misclassified adversarial images, 2k wrong and 10 - 2k right standard images.
    assert rows == {name: [3, 2, 2 * k, 10 - 2 * k] for k, name in enumerate(NAMES)}
    assert lines[7] == "Largest study that fits: 4 categories with 2 images per trial type (24 trials)."
    assert lines[8].startswith(
        "Lower the number (Trials; trials.categories in the file), or add images: cat (1 misclassified adversarial "
        "image); dog (1 misclassified adversarial image);"
    )


@pytest.mark.parametrize(
    ("wrong", "usable"), [(material(), ", of which only 4 can be used"), (material([*accuracy_spread(), (0, 1)]), "")]
)
def test_more_categories_than_there_are_are_not_had_by_images_of_one(wrong, usable):
    """Catches the advice to add one image, which does not make sixty categories of five."""
    with pytest.raises(CategoryShortage) as shortage:
        choose_categories(wrong, 60, 1)
    reason, remedy = shortage.value.summary.split(": each needs ")
    assert reason == f"You ask for 60 categories, but the image sets have only 5{usable}"
    advice = "Lower the number (Trials; trials.categories in the file), or add categories."
    missing = " To use all 5, add images: ant (1 misclassified standard image)." if usable else ""
    assert remedy.endswith(f"of each trial type. {advice}{missing}")


def test_one_teachable_category_allows_no_trial():
    """A right answer needs a foil whose examples can be shown."""
    m = material(pool=[(0, 0)] * 3)
    assert candidates(m, 0, "std_correct") == []
    assert Supply(m, 1).largest() == []


def test_matched_on_truth():
    m = material()
    for category in choose_categories(m, 3, 1):
        for trial_type in ("adv_incorrect", "std_incorrect", "std_correct"):
            assert {c.truth for c in candidates(m, category, trial_type)} == {category}
