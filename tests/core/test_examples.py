"""Choosing teaching sets: what each policy promises, on a made-up last layer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from core.errors import ForetellError
from core.teaching.examples import choose_examples
from core.teaching.kfac import fit_prior
from core.teaching.scoring import score_sets

FEATURES, CLASSES, IMAGES = 5, 4, 60


@pytest.fixture(scope="module")
def world():
    """(prior, features (60, 5)) of a made-up last layer."""
    g = torch.Generator().manual_seed(3)
    head = torch.randn(CLASSES, FEATURES + 1, generator=g, dtype=torch.float64)
    features = torch.randn(IMAGES, FEATURES, generator=g)
    return fit_prior(head, [features]), features


def search(world, policy, *, seed=1, targets=range(12), alternatives=range(12, 24), **settings):
    prior, features = world
    return choose_examples(
        prior,
        features,
        torch.tensor(list(targets)),
        torch.tensor(list(alternatives)),
        features[50],
        (2, 0),
        generator=torch.Generator().manual_seed(seed),
        policy=policy,
        **settings,
    )


def choose(world, policy, **settings):
    return search(world, policy, **settings).chosen


def every_set(world, targets, alternatives):
    """All sets in lexicographic order and their probabilities, without the code that chooses."""
    prior, features = world
    pairs = (itertools.combinations(side, 2) for side in (targets, alternatives))
    sets = torch.tensor([one + other for one, other in itertools.product(*map(list, pairs))])
    return sets, score_sets(prior, features, sets, features[50], (2, 0), weight=128.0)


def test_policies_pick_what_they_say(world):
    best, worst, random = (choose(world, p) for p in ("best", "unhelpful", "random"))
    assert worst.p_learner < random.p_learner < best.p_learner
    assert best.p_prior == worst.p_prior
    threshold = (random.p_learner + best.p_learner) / 2
    first = choose(world, "first", threshold=threshold)
    assert threshold < first.p_learner <= best.p_learner
    nothing = search(world, "first", threshold=0.999999)
    assert nothing.chosen is None
    assert nothing.best == best.p_learner
    assert nothing.scored == 200


def test_all_sets_are_all_and_best_and_unhelpful_are_their_extremes(world):
    sets, probabilities = every_set(world, range(7), range(12, 18))
    for policy, index in (("best", probabilities.argmax()), ("unhelpful", probabilities.argmin())):
        for seed in (1, 2):  # the order of scoring does not matter
            found = choose(world, policy, seed=seed, targets=range(7), alternatives=range(12, 18), sets=None)
            assert found.indices == tuple(sets[index].tolist())
            assert found.scored == len(sets) == 21 * 15
            assert found.p_learner == pytest.approx(float(probabilities[index]), abs=1e-10)
    few = search(world, "first", targets=range(3), alternatives=range(12, 15), threshold=1.0)
    assert few.scored == 9  # 200 asked for, 9 there are, each once


def test_random_sets_are_uniform_over_all_sets(world):
    """Each of 3 x 3 sets is first about equally often."""
    counts = {}
    for seed in range(450):
        found = choose(world, "random", seed=seed, targets=range(3), alternatives=range(12, 15))
        counts[found.indices] = counts.get(found.indices, 0) + 1
    assert len(counts) == 9
    assert sum((count - 50) ** 2 / 50 for count in counts.values()) < 26.1  # chi-squared with 8 df, p = .001


def test_no_exchange_of_one_image_betters_the_greedy_set(world):
    """By every exchange, scored without the code that chooses; and no worse than the best of 200 random sets."""
    greedy, best = choose(world, "greedy"), choose(world, "best")
    assert greedy.p_learner >= best.p_learner
    sets, probabilities = every_set(world, range(12), range(12, 24))
    known = {tuple(s): float(p) for s, p in zip(sets.tolist(), probabilities, strict=True)}
    assert greedy.p_learner == pytest.approx(known[greedy.indices], abs=1e-10)
    for place in range(4):
        for image in range(12) if place < 2 else range(12, 24):
            other = [*greedy.indices[:place], image, *greedy.indices[place + 1 :]]
            if len(set(other)) == 4:
                key = tuple(sorted(other[:2]) + sorted(other[2:]))
                assert known[key] <= greedy.p_learner + 1e-10
    assert greedy.scored == 200 + greedy.curve[-1][0]


def test_rank_and_curve_are_those_of_the_sets_scored(world):
    sets, probabilities = every_set(world, range(12), range(12, 24))
    known = {tuple(s): float(p) for s, p in zip(sets.tolist(), probabilities, strict=True)}
    random = choose(world, "random", sets=None)
    below = np.mean([p <= known[random.indices] + 1e-12 for p in known.values()])
    assert random.rank == pytest.approx(below, abs=1e-9)
    assert choose(world, "best").rank == 1.0
    counts, values = zip(*choose(world, "best", sets=200).curve, strict=True)
    assert counts == (1, 2, 4, 8, 16, 32, 64, 128, 200)
    assert list(values) == sorted(values)
    assert values[0] == choose(world, "random", sets=200).p_learner
    assert values[-1] == choose(world, "best", sets=200).p_learner


def test_equal_sets_are_told_apart_by_their_images_alone(world):
    """Duplicates in the pool make ties; rounding and the order of scoring must not choose between them."""
    prior, features = world
    doubled = features.clone()
    doubled[6:12], doubled[18:24] = features[:6], features[12:18]
    for policy in ("best", "unhelpful", "greedy"):
        found = {choose((prior, doubled), policy, seed=seed, sets=None).indices for seed in range(4)}
        assert len(found) == 1


def test_a_set_is_two_and_two_without_repeats(world):
    for policy in ("best", "random", "unhelpful", "greedy"):
        chosen = choose(world, policy).indices
        assert len(set(chosen)) == 4
        assert all(i < 12 for i in chosen[:2])
        assert all(12 <= i < 24 for i in chosen[2:])


def test_gain_is_the_change_of_log_odds(world):
    chosen = choose(world, "best")
    p, q = chosen.p_learner, chosen.p_prior
    assert chosen.gain == pytest.approx(np.log(p / (1 - p)) - np.log(q / (1 - q)), rel=1e-9)


def test_same_seed_same_set(world):
    assert choose(world, "best") == choose(world, "best")
    assert choose(world, "best", draws=100) == choose(world, "best", draws=100)


def test_the_papers_draws_blur_the_probabilities(world):
    exact, drawn = choose(world, "best"), choose(world, "best", draws=100)
    assert 0 < abs(exact.p_learner - drawn.p_learner) < 0.1


def test_too_few_images_and_unknown_policy_and_too_many_sets_are_refused(world):
    with pytest.raises(ForetellError, match="The pool has 1 usable images"):
        search(world, "first", targets=range(1))
    with pytest.raises(ForetellError, match="Unknown teaching policy 'worst'"):
        search(world, "worst")
    many = {"targets": [0] * 100, "alternatives": [1] * 100}
    with pytest.raises(ForetellError, match=r"gives 24,502,500 teaching sets .* or use policy 'greedy'"):
        search(world, "best", sets=None, **many)
    assert search(world, "best", sets=50, **many).scored == 50


def test_the_other_random_sets_are_counted_without_the_chosen_one(world):
    """Catches a set that beats itself, and sets that are equally good and not counted: here two images are alike."""
    prior, features = world
    twins = features.clone()
    twins[1] = twins[0]
    alike = prior, twins
    sets, probabilities = every_set(alike, range(5), range(12, 15))
    for policy in ("best", "unhelpful", "random", "greedy"):
        found = choose(alike, policy, targets=range(5), alternatives=range(12, 15), sets=None)
        own = torch.tensor([tuple(one) == found.indices for one in sets.tolist()])
        others = probabilities[~own]
        assert found.others == len(others) == 29
        assert found.higher == int((others > found.p_learner + 1e-10).sum())
        assert found.equal == int(((others - found.p_learner).abs() < 1e-10).sum())
    assert sum(choose(alike, "random", seed=k, targets=range(5), alternatives=range(12, 15)).equal for k in range(9))
