"""Balance of conditions and sides, and the order of trials."""

import hashlib
import tracemalloc
from collections import Counter
from itertools import groupby, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.participation.allocation import blocks, list_new_slots, mode_seed
from study.participation.order import shuffle_trials

CONDITIONS = ("none", "saliency", "examples", "both")


@given(st.integers(1, 20), st.integers(0, 2**31))
def test_every_block_holds_every_condition_once(per_condition: int, seed: int) -> None:
    slots = blocks(CONDITIONS, per_condition, seed)
    for start in range(0, len(slots), 4):
        assert {slot.condition for slot in slots[start : start + 4]} == set(CONDITIONS)
        assert {slot.block for slot in slots[start : start + 4]} == {start // 4}
    assert len(slots) == 4 * per_condition


@given(st.integers(1, 10), st.integers(0, 2**31))
def test_sides_are_balanced_within_every_condition(pairs: int, seed: int) -> None:
    counts = Counter((slot.condition, slot.side_flip) for slot in blocks(CONDITIONS, 2 * pairs, seed))
    assert set(counts.values()) == {pairs}
    assert len(counts) == 8


@given(st.integers(1, 10), st.integers(1, 10), st.integers(0, 2**31))
def test_a_larger_study_begins_with_the_same_slots(few: int, more: int, seed: int) -> None:
    assert blocks(CONDITIONS, few + more, seed)[: 4 * few] == blocks(CONDITIONS, few, seed)


def test_seeds_and_modes_differ() -> None:
    assert blocks(CONDITIONS, 10, 1) != blocks(CONDITIONS, 10, 2)
    assert mode_seed(1, "live") != mode_seed(1, "sim")
    seeds = [slot.order_seed for slot in blocks(CONDITIONS, 40, 1)]
    assert len(set(seeds)) == 160


def test_conditions_are_not_in_a_fixed_order() -> None:
    """Catches blocks that are not permuted: each condition comes first in about a quarter of 400 blocks."""
    first = Counter(slot.condition for slot in blocks(CONDITIONS, 400, 3)[::4])
    assert min(first.values()) > 60  # binomial(400, 1/4): below 60 has probability < 2e-6


@given(st.integers(1, 10), st.integers(1, 10), st.integers(0, 2**31))
def test_shuffled_places_are_those_of_the_blocks_also_when_a_study_is_enlarged(few: int, more: int, seed: int) -> None:
    first = list_new_slots(CONDITIONS, few, seed, 0, "shuffled")
    added = list_new_slots(CONDITIONS, few + more, seed, few, "shuffled")
    in_blocks = sorted([*first, *added], key=lambda slot: (slot.block, slot.order_seed))
    assert in_blocks == sorted(blocks(CONDITIONS, few + more, seed), key=lambda slot: (slot.block, slot.order_seed))


def test_the_next_of_the_shuffled_places_cannot_be_told() -> None:
    """Catches blocks under another name: in blocks, a group of four never has a condition twice.

    Closed form: four of 160 places have four conditions with probability 40^4 / C(160, 4) = .097; 400 studies of one
    group each give a share below .16 with probability > .9999.
    """
    groups = [
        {slot.condition for slot in list_new_slots(CONDITIONS, 40, seed, 0, "shuffled")[:4]} for seed in range(400)
    ]
    assert sum(len(group) == 4 for group in groups) / 400 < 0.16
    assert list_new_slots(CONDITIONS, 40, 1, 0, "blocks") == blocks(CONDITIONS, 40, 1)


def longest_run(sides: list[bool]) -> int:
    return max(len(list(group)) for _, group in groupby(sides))


@given(st.lists(st.booleans(), min_size=1, max_size=90), st.integers(0, 2**31))
def test_the_order_is_a_permutation_with_the_shortest_possible_runs(sides: list[bool], seed: int) -> None:
    order = shuffle_trials(sides, np.random.default_rng(seed))
    assert sorted(order) == list(range(len(sides)))
    few, many = sorted((sides.count(True), sides.count(False)))
    unavoidable = -(-many // (few + 1))  # pigeonhole: `few` separators make few + 1 places
    assert longest_run([sides[i] for i in order]) <= max(3, unavoidable)


def test_every_admissible_pattern_is_equally_likely() -> None:
    """Against enumeration of all patterns of 4 + 3 with runs of at most 3; chi-square with 32 - 1 df."""
    sides = [True] * 4 + [False] * 3
    wanted = [p for p in product((True, False), repeat=7) if sum(p) == 4 and longest_run(list(p)) <= 3]
    rng = np.random.default_rng(0)
    counts = Counter(tuple(sides[i] for i in shuffle_trials(sides, rng)) for _ in range(4000))
    assert set(counts) <= set(wanted)
    expected = 4000 / len(wanted)
    chi2 = sum((counts[p] - expected) ** 2 / expected for p in wanted)
    assert chi2 < 61.1  # p = .001 at 31 degrees of freedom
    assert len(wanted) <= 32


def test_the_first_trial_is_any_trial() -> None:
    rng = np.random.default_rng(1)
    first = Counter(shuffle_trials([True, False] * 5, rng)[0] for _ in range(1000))
    assert min(first.values()) > 60  # binomial(1000, 1/10): below 60 has probability < 1e-5


@pytest.mark.parametrize(
    ("sides", "seed", "digest"),
    [
        ([True, False, False] * 30, 7, "0ba0d1ac4898ed2c9f0fa7caed5f03b689a3c07e698eb58f6cd6f24efe01ce73"),
        ([True] * 60 + [False] * 29, 2021, "279105f2324044456c7ca944108a457f514d819159d7646778d03b309a8a2b82"),
    ],
)
def test_orders_that_were_given_out_do_not_change(sides: list[bool], seed: int, digest: str) -> None:
    """Catches another drawing of the pattern: `verify` would call every plan of an earlier version wrong.

    The digests are of orders drawn from the exact numbers of patterns, counted in whole numbers.
    """
    assert hashlib.sha256(bytes(shuffle_trials(sides, np.random.default_rng(seed)))).hexdigest() == digest


def test_thousands_of_trials_take_little_memory() -> None:
    """Catches counting patterns in whole numbers: 1,000 trials a person then take 300 MB, 5,000 many gigabytes."""
    tracemalloc.start()
    sides = [True, False] * 1000
    order = shuffle_trials(sides, np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sorted(order) == list(range(2000))
    assert longest_run([sides[i] for i in order]) <= 3
    assert peak < 50e6


@pytest.mark.parametrize("sides", [[True], [True] * 7])
def test_one_sided_studies_are_still_ordered(sides: list[bool]) -> None:
    assert sorted(shuffle_trials(sides, np.random.default_rng(0))) == list(range(len(sides)))
