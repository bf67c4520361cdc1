from __future__ import annotations

import itertools
from math import factorial

import pytest
import torch
from captum.attr import ShapleyValues
from torch import nn

from core.attribution.players import Cells, all_coalitions
from core.attribution.surrogates.shapley import kernel_shap, shapley_exact, shapley_sampling
from core.attribution.surrogates.shapley_values import (
    draw_pairs,
    exact,
    kernel_error,
    kernel_regression,
    kernel_weights,
    marginals,
    prefixes,
    size_weights,
)
from core.errors import ForetellError
from core.network.classifier import Classifier
from tests.core.networks import SIDE, ToyA, awkward, pictures, unit

SAME = {"rtol": 1e-10, "atol": 1e-10}


def toy_values(baseline: list[float], groups: list[list[int]]) -> torch.Tensor:
    """v(S) of toy A at (20, 50, 30) with groups of inputs as players, (2^n,)."""
    x, absent = torch.tensor([20.0, 50.0, 30.0]), torch.tensor(baseline)
    shown = []
    for coalition in all_coalitions(len(groups)).tolist():
        row = absent.clone()
        for group in itertools.compress(groups, coalition):
            row[group] = x[group]
        shown.append(row)
    return ToyA()(torch.stack(shown).view(-1, 1, 1, 3))[:, 0].double()


def by_kernel(values: torch.Tensor) -> torch.Tensor:
    """The same from the regression over all coalitions."""
    coalitions = all_coalitions(values.shape[-1].bit_length() - 1)[1:-1]
    weights = kernel_weights(coalitions)
    return kernel_regression(coalitions, values[None, 1:-1], weights, values[None, 0], values[None, -1])[0]


def by_all_orders(values: torch.Tensor) -> torch.Tensor:
    """The same as the mean over all n! orders."""
    players = values.shape[-1].bit_length() - 1
    bits = 2 ** torch.arange(players)
    found = []
    for order in itertools.permutations(range(players)):
        way = torch.tensor(order)
        between = values[None, (prefixes(way).long() * bits).sum(1)]
        found.append(marginals(way, between, values[None, 0], values[None, -1])[0])
    return torch.stack(found).mean(0)


@pytest.mark.parametrize("solver", [exact, by_kernel, by_all_orders])
@pytest.mark.parametrize(
    ("baseline", "groups", "expected"),
    [
        ([0, 0, 0], [[0], [1], [2]], [76 + 2 / 3, 196 + 2 / 3, 116 + 2 / 3]),
        ([0, 0, 0], [[0, 1], [2]], [275, 115]),
        ([4, 4, 4], [[0, 1], [2]], [248, 104]),
        ([10, 20, 10], [[0], [1], [2]], [40, 120, 80]),
    ],
)
def test_toy_a(solver, baseline, groups, expected):
    """captum tests/attr/test_shapley.py and test_kernel_shap.py."""
    found = solver(toy_values([float(b) for b in baseline], groups))
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-4)


@pytest.mark.parametrize("solver", [exact, by_kernel, by_all_orders])
def test_a_network_of_independent_parts(solver):
    """B relu(A x), A = diag(3, -2, 1), by hand: a player gets what its own unit says, so (3, 0, 0) and (0, 0, 3) for
    (1, 2, 3); for (-1, -2, 3) the first unit is off and the second on: (0, 4, 0) and (0, 4, 3)."""
    scale, mix = torch.tensor([3.0, -2.0, 1.0]), torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    for x, rows in [((1, 2, 3), ((3, 0, 0), (0, 0, 3))), ((-1, -2, 3), ((0, 4, 0), (0, 4, 3)))]:
        shown = all_coalitions(3) * torch.tensor(x)
        values = ((shown * scale).relu() @ mix.T).T.double()
        for value, row in zip(values, rows, strict=True):
            torch.testing.assert_close(solver(value), torch.tensor(row, dtype=torch.float64), **SAME)


@pytest.mark.parametrize("solver", [exact, by_kernel, by_all_orders])
def test_the_formula_written_out(solver):
    """Slow, from the definition, on a game of random values of 5 players."""
    n = 5
    values = torch.randn(2**n, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    expected = torch.zeros(n, dtype=torch.float64)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for size in range(n):
            for s in itertools.combinations(others, size):
                number = sum(2**j for j in s)
                weight = factorial(size) * factorial(n - size - 1) / factorial(n)
                expected[i] += weight * (values[number + 2**i] - values[number])
    torch.testing.assert_close(solver(values), expected, **SAME)


def test_the_kernel():
    """Sizes of 5 players weigh (1, 2/3, 2/3, 1) (captum test_kernel_shap.py); one coalition of 4 players by hand:
    (n - 1) / (C(4, 2) 2 2) = 1/8."""
    torch.testing.assert_close(size_weights(5), torch.tensor([1, 2 / 3, 2 / 3, 1], dtype=torch.float64), **SAME)
    assert float(kernel_weights(torch.tensor([[True, False, True, False]]))) == pytest.approx(1 / 8)


def test_draws_follow_the_kernel_and_come_with_their_complements():
    drawn = draw_pairs(5, 20_000, torch.Generator().manual_seed(3))
    assert torch.equal(drawn[0::2], ~drawn[1::2])
    share = torch.bincount(drawn.sum(1), minlength=6)[1:5] / len(drawn)
    torch.testing.assert_close(share, torch.tensor([0.3, 0.2, 0.2, 0.3]), rtol=0, atol=0.012)
    numbers = (drawn.long() * 2 ** torch.arange(5)).sum(1)
    pairs_of_two = torch.bincount(numbers, minlength=32)[[3, 5, 9, 17, 6, 10, 18, 12, 20, 24]] / len(drawn)
    torch.testing.assert_close(pairs_of_two, torch.full((10,), 0.02), rtol=0, atol=0.004)


def test_the_regressions_error_is_the_spread_of_its_repetitions():
    n = 6
    rng = torch.Generator().manual_seed(8)
    values = torch.randn(1, 2**n, generator=rng, dtype=torch.float64)
    empty, full = values[:, 0], values[:, -1]
    found, stated = [], []
    for _ in range(1000):
        coalitions = draw_pairs(n, 60, rng)
        v = values[:, (coalitions.long() * 2 ** torch.arange(n)).sum(1)]
        found.append(kernel_regression(coalitions, v, torch.ones(120, dtype=torch.float64), empty, full)[0])
        stated.append(kernel_error(coalitions, v, found[-1][None], empty)[0])
    spread, error = torch.stack(found).std(0), torch.stack(stated).square().mean(0).sqrt()
    torch.testing.assert_close(error, spread, rtol=0.12, atol=0)
    bias = (torch.stack(found).mean(0) - exact(values[0])).abs() / (spread / 1000**0.5)
    assert bias.max() < 5


def sums(explanation, grid):
    """The map summed over its cells, (B, players)."""
    index = Cells(*explanation.map.shape[1:], grid).index.flatten()
    total = torch.zeros(len(explanation.map), grid**2, dtype=torch.float64)
    return total.index_add_(1, index, explanation.map.flatten(1).double())


def test_exact_agrees_with_captum():
    """captum goes through all 4! orders."""
    classifier, images = awkward(), pictures(2)
    whole = ShapleyValues(classifier.logits).attribute(
        images,
        classifier.fill("mean")[None],
        torch.tensor([1, 2]),
        feature_mask=Cells(SIDE, SIDE, 2).index[None, None],
    )
    # Every pixel of their map holds its cell's whole value; ours share it.
    found = shapley_exact(classifier, images, [1, 2], grid=2).map
    torch.testing.assert_close(found, whole[:, 0].float() / 36, rtol=1e-3, atol=1e-5)


def test_all_coalitions_make_the_kernel_exact():
    classifier, images = awkward(), pictures(2)
    truth = shapley_exact(classifier, images, [1, 2], grid=3).map
    found = kernel_shap(classifier, images, [1, 2], grid=3, samples=510)
    torch.testing.assert_close(found.map, truth, rtol=1e-4, atol=1e-6)
    assert found.error is None
    assert found.certificates[0].samples is None
    assert kernel_shap(classifier, images, [1, 2], grid=3, samples=509).error is not None


@pytest.mark.parametrize("output", ["logit", "probability"])
@pytest.mark.parametrize(("method", "parameters"), [(shapley_sampling, {"pairs": 60}), (kernel_shap, {"samples": 400})])
def test_samples_lie_about_the_exact_values(method, parameters, output):
    classifier, images = awkward(), pictures(3)
    truth = shapley_exact(classifier, images, [0, 1, 2], grid=3, output=output).map
    found = method(classifier, images, [0, 1, 2], grid=3, output=output, **parameters)
    z = (found.map - truth) / found.error
    assert 0.3 < float(z.square().mean().sqrt()) < 2
    assert float(found.error.mean()) < 0.3 * float(truth.abs().mean())
    for b, certificate in enumerate(found.certificates):
        assert certificate.standard_error == pytest.approx(float(found.error[b].max()))


METHODS = [
    (shapley_exact, {"grid": 3}),
    (shapley_sampling, {"grid": 5, "pairs": 2}),
    (kernel_shap, {"grid": 5, "samples": 100}),
]


@pytest.mark.parametrize(("method", "parameters"), METHODS)
def test_a_linear_network_gives_w_x_minus_b_exactly(method, parameters):
    """Closed form; cells of 12 / 5 px are unequal."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 2))
    classifier, image = Classifier(network, unit, name="linear"), pictures(1)
    gave = (network[1].weight[1].detach().view(3, SIDE, SIDE) * (image[0] - classifier.fill("mean"))).sum(0)
    found = method(classifier, image, [1], **parameters)
    grid = parameters["grid"]
    expected = torch.zeros(grid**2).index_add_(0, Cells(SIDE, SIDE, grid).index.flatten(), gave.flatten())
    torch.testing.assert_close(sums(found, grid)[0].float(), expected, rtol=1e-4, atol=1e-5)
    if found.error is not None:
        assert found.error.max() < 1e-5


@pytest.mark.parametrize(("method", "parameters"), METHODS)
def test_the_map_sums_to_the_difference(method, parameters):
    classifier, images = awkward(), pictures(2)
    found = method(classifier, images, [0, 2], fill="black", **parameters)
    whole, nothing = classifier.logits(images), classifier.logits(classifier.fill("black")[None])[0]
    for b, target in enumerate([0, 2]):
        assert float(found.map[b].sum()) == pytest.approx(float(whole[b, target] - nothing[target]), rel=1e-4)
        assert abs(found.certificates[b].completeness) < 1e-5


def test_cells_of_an_uneven_image():
    index = Cells(5, 7, 3).index
    assert index[:, 0].tolist() == [0, 0, 3, 3, 6]
    assert index[0].tolist() == [0, 0, 0, 1, 1, 2, 2]
    spread = Cells(5, 7, 3).spread(torch.arange(9.0)[None])
    assert float(spread.sum()) == pytest.approx(36)
    assert torch.equal(Cells(5, 7, 3).masks(torch.eye(9)).sum(0), torch.ones(5, 7))


def test_more_samples_begin_with_the_same_draws():
    classifier, image = awkward(), pictures(1)
    one, other = (
        kernel_shap(classifier, image, [0], grid=4, samples=s, generator=torch.Generator().manual_seed(2))
        for s in (200, 201)
    )
    assert torch.equal(one.map, other.map)
    assert other.certificates[0].samples == 200


@pytest.mark.parametrize(
    ("method", "parameters", "says"),
    [
        (shapley_exact, {"grid": 5}, "shapley_sampling"),
        (shapley_exact, {"grid": 1}, "2 to 12"),
        (shapley_sampling, {"grid": 13}, "2 to 12"),
        (shapley_sampling, {"pairs": 1}, "at least 2 pairs"),
        (kernel_shap, {"grid": 5, "samples": 99}, "at least 100"),
    ],
)
def test_bad_parameters_are_refused(method, parameters, says):
    with pytest.raises(ForetellError, match=says):
        method(awkward(), pictures(1), [0], **parameters)


def test_a_regression_that_cannot_tell_players_apart_says_so():
    coalitions = torch.tensor([[True, True, False], [False, False, True]])
    with pytest.raises(ForetellError, match="raise 'samples'"):
        kernel_regression(
            coalitions,
            torch.ones(1, 2).double(),
            torch.ones(2).double(),
            torch.zeros(1).double(),
            torch.ones(1).double(),
        )
