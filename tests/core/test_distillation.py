"""Trees that imitate a network: planted rules that they have to find, and soft trees against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from core.distillation.factors import Clause, encode_factors, simplify_rule
from core.distillation.soft_tree import SoftTree, fit_soft_tree
from core.distillation.tree import fit_tree
from core.errors import ForetellError


@pytest.mark.parametrize(("leaves", "smallest"), [(2, 1), (7, 1), (25, 3), (25, 12)])
def test_an_image_is_in_the_leaf_whose_conditions_it_meets(leaves: int, smallest: int) -> None:
    """By hand, condition by condition. Catches the two sides of a split exchanged, and counts of another leaf."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 6))
    y = (np.floor(2 * x[:, 0]) + 3 * (x[:, 1] > 0.3) + rng.integers(0, 2, 300)).astype(int)
    y -= y.min()
    tree = fit_tree(x, y, leaves=leaves, smallest=smallest)
    assert len(tree.leaves) <= leaves
    for number, leaf in enumerate(tree.leaves):
        meets = np.array([all((row[one.feature] > one.threshold) == one.above for one in leaf.path) for row in x])
        assert meets.sum() >= smallest
        np.testing.assert_array_equal(meets, tree.locate(x) == number)
        np.testing.assert_array_equal(leaf.counts, [(y[meets] == label).sum() for label in range(y.max() + 1)])
        assert set(tree.predict(x[meets])) == {np.bincount(y[meets]).argmax()}


def test_growth_ends_where_no_split_is_left() -> None:
    """Closed form: four groups, whatever the number of leaves. Catches a leaf that is split for nothing."""
    x = np.array([[a, b] for a in (0.0, 1) for b in (0.0, 1)] * 10)
    tree = fit_tree(x, (2 * x[:, 0] + x[:, 1]).astype(int), leaves=30, smallest=1)
    assert sorted(leaf.counts.tolist() for leaf in tree.leaves) == sorted((10 * np.eye(4, dtype=int)).tolist())
    assert len(fit_tree(x, np.arange(40) // 4 % 2, leaves=30, smallest=1).leaves) == 1


def test_a_planted_rule_is_found_in_words() -> None:
    """boat at sea, or not on a road in the dark. Catches a lost condition and what is said twice."""
    rng = np.random.default_rng(1)
    place = rng.choice(["road", "sea", "sky"], 400).tolist()
    light = rng.choice(["dark", "bright"], 400).tolist()
    boat = np.array([p == "sea" or (p == "sky" and b == "dark") for p, b in zip(place, light, strict=True)])
    features, columns = encode_factors({"place": place, "light": light})
    found = fit_tree(features, boat.astype(int), leaves=8)
    assert (found.predict(features) == boat).all()
    rules = {(simplify_rule(leaf, columns), leaf.most_common) for leaf in found.leaves}
    assert (Clause("place", ("road",), holds=False), Clause("light", ("dark",))) in {
        tuple(sorted(rule, key=lambda one: one.factor, reverse=True)) for rule, said in rules if said
    }
    for rule, said in rules:
        meets = np.ones(400, dtype=bool)
        for clause in rule:
            values = place if clause.factor == "place" else light
            meets &= np.array([(one in clause.values) == clause.holds for one in values])
        assert meets.any()
        assert set(boat[meets].tolist()) == {bool(said)}


def test_bounds_of_a_number_are_merged() -> None:
    x = np.linspace(0, 1, 100)[:, None]
    y = ((x[:, 0] > 0.305) & (x[:, 0] <= 0.605)).astype(int)
    _, columns = encode_factors({})
    tree = fit_tree(x, y, leaves=3)
    assert columns == ()
    (middle,) = [leaf for leaf in tree.leaves if leaf.most_common == 1]
    (clause,) = simplify_rule(middle, [type("Column", (), {"factor": "size", "value": ""})()])
    assert (clause.low, clause.high) == pytest.approx((0.305, 0.605), abs=0.01)


def test_a_soft_tree_of_depth_one_is_logistic_regression() -> None:
    """Leaves that are certain: P(right) is the sigmoid. Against scikit-learn with the same penalty."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 3))
    y = (x @ [1.0, -2.0, 0.5] + rng.logistic(size=200) > 0.3).astype(int)
    certain = torch.tensor([[0.0, -torch.inf], [-torch.inf, 0.0]])
    own = fit_soft_tree(torch.from_numpy(x), torch.eye(2)[torch.from_numpy(y)], depth=1, penalty=2.0, leaves=certain)
    theirs = LogisticRegression(C=0.5, tol=1e-10).fit(x, y)
    np.testing.assert_allclose(own.weights[0].numpy(), theirs.coef_[0], atol=1e-5)
    assert float(own.biases[0]) == pytest.approx(float(theirs.intercept_[0]), abs=1e-5)


def test_a_soft_tree_sums_over_all_paths() -> None:
    """By a loop over the four paths of a tree of depth 2."""
    draws = torch.Generator().manual_seed(1)
    tree = SoftTree(
        torch.randn(3, 2, generator=draws).double(),
        torch.randn(3, generator=draws).double(),
        torch.randn(4, 3, generator=draws).double().log_softmax(1),
    )
    x = torch.randn(5, 2, generator=draws).double()
    right = (x @ tree.weights.T + tree.biases).sigmoid()
    expected = torch.zeros(5, 3, dtype=torch.double)
    for leaf in range(4):
        first, second = divmod(leaf, 2)
        top = right[:, 0] if first else 1 - right[:, 0]
        below = right[:, 1 + first] if second else 1 - right[:, 1 + first]
        expected += (top * below)[:, None] * tree.leaves[leaf].exp()
    torch.testing.assert_close(tree.predict(x).exp(), expected)


def test_a_deeper_soft_tree_learns_exclusive_or() -> None:
    """No single node can. Catches nodes of the second level that share one gate."""
    x = torch.tensor([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)]).repeat(20, 1)
    y = (x[:, 0] * x[:, 1] > 0).long()
    targets = torch.eye(2)[y]
    found = [fit_soft_tree(x, targets, depth=depth, penalty=0.01).predict(x).argmax(1) for depth in (1, 2)]
    assert (found[1] == y).all()
    assert not (found[0] == y).all()


def test_what_is_no_tree_is_refused() -> None:
    with pytest.raises(ForetellError, match="2 or more leaves"):
        fit_tree(np.zeros((3, 1)), np.zeros(3, dtype=int), leaves=1)
    with pytest.raises(ForetellError, match="depth of 1 to 6"):
        fit_soft_tree(torch.zeros(3, 1), torch.zeros(3, 2), depth=9)
