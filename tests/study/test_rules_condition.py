"""The condition rules: which rules are chosen for an image, of which images they are, and in which words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch

from core.distillation.factors import Clause, encode_factors
from core.distillation.rules import Rules, fit_rules
from core.errors import ForetellError
from data.types import ImageSet
from study.conditions import CONDITIONS
from study.conditions.rules import condition as rules
from study.conditions.rules.card import draw_rule, word_clause
from study.conditions.rules.draws import describe_images, draw_again
from study.locales import CATALOGUES
from study.network.sources import open_sets
from study.plan.config import read
from tests.study.studies import SMALL

pytestmark = pytest.mark.usefixtures("shared_predictions")

FILE = f'language = "de"\nconditions = ["none", "rules"]\n{SMALL}'
CONDITION = CONDITIONS["rules"]


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> ImageSet:
    home = tmp_path_factory.mktemp("pool")
    (home / "tiny.toml").write_text(FILE)
    return open_sets(read(home / "tiny.toml"), home)["pool"]


def plant() -> tuple[Rules, tuple[str, ...]]:
    """Rules of an AI that calls what is at sea class 1, and elsewhere a cup class 2 and all else class 0."""
    draws = np.random.default_rng(0)
    place, thing = draws.choice(["sea", "sky", "road"], 300), draws.choice(["cup", "cat"], 300)
    features, columns = encode_factors({"place": place.tolist(), "thing": thing.tolist()})
    said = np.where(place == "sea", 1, np.where(thing == "cup", 2, 0))
    return fit_rules(features, columns, said, leaves=8), tuple(f"{one.factor} {one.value}" for one in columns)


@pytest.mark.parametrize(
    ("seen", "k", "clauses"),
    [
        (("place sea", "thing cup"), 1, {"place": (("sea",), True)}),
        (("place sea", "thing cup"), 2, {"place": (("sea",), False), "thing": (("cup",), True)}),
        (("place sky", "thing cat"), 1, {"place": (("sea",), True)}),
    ],
)
def test_the_rule_of_a_name_is_the_nearest_that_leads_to_it(seen, k, clauses) -> None:
    """Planted: each class has one rule. Catches a rule of another class and one of the image's own class alone."""
    planted, names = plant()
    assert planted.fidelity.value == 1
    features = np.array([[float(name in seen) for name in names]])
    leaf = rules.choose_rule(planted, features, k)
    found = {clause.factor: (clause.values, clause.holds) for clause in planted.read_rule(leaf)}
    assert found == clauses
    assert rules.compute_share(planted, leaf, k) == 1


def test_an_image_that_meets_a_rule_is_given_it_if_the_rule_leads_to_the_name() -> None:
    """Sea is class 1, sky mostly, road class 2. Catches the rule with most images, and one that leads elsewhere."""
    place = np.array(["sea"] * 200 + ["sky"] * 100 + ["road"] * 150)
    said = np.array([1] * 200 + [1, 1, 1, 1, 2] * 20 + [2] * 150)
    features, columns = encode_factors({"place": place.tolist()})
    found = fit_rules(features, columns, said, leaves=8)
    sky = np.array([[float(one.value == "sky") for one in columns]])
    assert len(found.tree.leaves) == 3
    for k, expected in ((1, ("sky",)), (2, ("road",))):
        (clause,) = found.read_rule(rules.choose_rule(found, sky, k))
        assert (clause.values, clause.holds) == (expected, True)
    unheard = rules.choose_rule(found, sky, 7)  # no rule leads to a class that was never predicted
    assert 0 <= unheard < 3


def test_images_are_drawn_again_as_they_are_described(pool: ImageSet) -> None:
    """Against the generator, and the two factors no longer go together. Catches a description of the image before."""
    drawn = draw_again(pool, 320, 3)
    assert drawn.values["object"] == [pool.categories[pool.labels[i % len(pool)]] for i in range(320)]
    for k in (0, 170):
        expected = pool.factors["context"].do(k % len(pool), drawn.values["context"][k])
        assert np.array_equal(np.asarray(drawn.open(k)), np.asarray(expected))
    assert pool.contexts is not None
    same = np.mean([drawn.values["context"][k] == pool.contexts[k % len(pool)] for k in range(320)])
    assert same < 0.25  # of ten contexts one in ten
    assert draw_again(pool, 320, 3).values == drawn.values != draw_again(pool, 320, 4).values
    assert describe_images(pool).values["context"] == list(pool.contexts)


def test_a_rule_is_worded_in_the_language_and_drawn_with_room_for_all_of_it() -> None:
    words = CATALOGUES["de"]
    assert word_clause(Clause("place", ("sea", "sky", "road"), holds=False), words) == "nicht sea, sky oder road"
    assert word_clause(Clause("place", ("sea",)), CATALOGUES["en"]) == "sea"
    long = [Clause("object", tuple(f"thing{k}" for k in range(12)), holds=False), Clause("place", ("sea",))]
    for clauses in (long, long[1:], []):
        drawn = np.asarray(draw_rule(clauses, 0.5, words, (336, 336)).convert("L"))
        assert drawn.min() < 100
        assert (drawn[[0, -1]] == 255).all()
        assert (drawn[:, [0, -1]] == 255).all()


def test_images_of_which_nothing_is_known_are_refused(pool: ImageSet) -> None:
    plain = SimpleNamespace(factors={}, name="folder/mine", categories=("a",))
    with pytest.raises(ForetellError, match="of folder/mine nothing is known: take a generated set"):
        describe_images(cast(ImageSet, plain))
    alone = SimpleNamespace(factors={"object": pool.factors["object"]}, name="x", categories=pool.categories)
    with pytest.raises(ForetellError, match="only the category can be changed"):
        draw_again(cast(ImageSet, alone), 5, 0)


def test_nothing_random_is_left_to_the_process() -> None:
    before = torch.random.get_rng_state()
    plant()
    assert torch.equal(before, torch.random.get_rng_state())
