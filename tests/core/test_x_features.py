"""x-features: each term of the objective in closed form, and planted parts that x-features have to find."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
import torch
from torch import Tensor

from core.concepts.x_feature_measures import (
    compute_locality,
    match_features,
    measure_faithfulness,
    measure_orthogonality,
)
from core.concepts.x_features import (
    XFeatures,
    XFeatureSettings,
    compute_pull_away,
    compute_sparsity,
    fit_x_features,
)
from core.errors import ForetellError

MIX = torch.tensor([[1.0, 0], [0, 1], [0.5, 0.5], [0.8, 0.1], [0.1, 0.9], [0, 0]]).double()
"""Channels that respond to the first part, to the second, or to both."""


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw_parts(count: int = 200) -> Tensor:
    """Two parts, each present in a quarter of the images, as much as chance wants."""
    draws = generator(3)
    return torch.rand(count, 2, generator=draws).double() * (torch.rand(count, 2, generator=draws) < 0.25)


def build_layer(parts: Tensor) -> Tensor:
    """Channels of the two parts, and three that have nothing to do with the class."""
    return torch.cat([parts @ MIX.T, torch.rand(len(parts), 3, generator=generator(4)).double()], 1)


@pytest.fixture(scope="module")
def planted() -> tuple[Tensor, Tensor, XFeatures]:
    parts = draw_parts()
    z, y = build_layer(parts), 2 * parts[:, 0] + 1.5 * parts[:, 1]
    return parts, z, fit_x_features(z, y, XFeatureSettings(features=2), generator=generator())


def test_pull_away_is_the_mean_squared_cosine() -> None:
    """Catches a cosine that is not squared, pairs of a feature with itself, and a mean over another number of pairs."""
    orthonormal = torch.linalg.qr(torch.randn(20, 4, generator=generator()).double()).Q
    assert float(compute_pull_away(orthonormal)) == pytest.approx(0, abs=1e-12)
    equal = torch.rand(20, 1, generator=generator()).double() * torch.tensor([1.0, 2, 5])
    assert float(compute_pull_away(equal)) == pytest.approx(1)
    half = torch.tensor([[1.0, 1], [0, 3**0.5], [0, 0]]).double()  # cosine 1/2
    assert float(compute_pull_away(half)) == pytest.approx(0.25)
    assert float(compute_pull_away(orthonormal[:, :1])) == 0


def test_sparsity_is_the_log_penalty() -> None:
    """Catches a sum in place of the mean, and q outside of the logarithm."""
    assert float(compute_sparsity(torch.tensor([0.0, 1.0, 3.0]), 2.0)) == pytest.approx((math.log(3) + math.log(7)) / 3)


def test_as_many_linear_features_as_the_rank_reconstruct_everything() -> None:
    """Catches a decoder that does not reach the layer's units, and errors of another image or dimension."""
    z = torch.randn(60, 2, generator=generator()).double() @ torch.randn(2, 7, generator=generator(1)).double() * 30 + 5
    settings = XFeatureSettings(features=2, rectified=False, beta=1, decay=0, eta=0, starts=1, steps=1500)
    found = fit_x_features(z, z[:, 0] * 3 + 100, settings, generator=generator())
    assert float(found.compute_errors(z).max()) < 1e-3
    fewer = fit_x_features(z, z[:, 0], XFeatureSettings(features=1, rectified=False, starts=1), generator=generator())
    assert float(fewer.compute_errors(z).max()) > 0.05
    logits = torch.stack([z[:, 0] * 3 + 100, z[:, 1]], 1)
    assert measure_faithfulness(found.predict(z), logits, 0).explained > 0.999


def test_orthogonality_of_uncorrelated_and_of_correlated_features() -> None:
    """Catches covariances in place of correlations, a norm without its root, and the sign of O2."""
    x = torch.randn(50, 3, generator=generator()).double()
    free = torch.linalg.qr(x - x.mean(0)).Q * torch.tensor([1.0, 4, 9]) + 7
    assert measure_orthogonality(free) == pytest.approx((0, 0), abs=1e-9)
    two = free[:, :2] / torch.tensor([1.0, 4])
    mixed = torch.stack([two[:, 0], 0.6 * two[:, 0] + 0.8 * two[:, 1]], 1)  # correlation .6
    expected = math.sqrt(2 + 2 * 0.36) - math.sqrt(2), -math.log(1 - 0.36)
    assert measure_orthogonality(mixed) == pytest.approx(expected)
    o1, o2 = measure_orthogonality(torch.cat([mixed[:, :1]] * 2, 1))
    assert (o1, o2) == (pytest.approx(2 - math.sqrt(2)), math.inf)


def test_partners_are_matched_one_to_one_by_correlation() -> None:
    """Against all orders of four x-features. Catches the best match of each alone, a sign that is lost, and scales."""
    one = torch.randn(50, 4, generator=generator()).double()
    other = torch.stack([one[:, 2] * 3 + 1, -one[:, 0], one[:, 2] + 0.1 * one[:, 3], one[:, 3] * 0 + 4], 1)
    every = torch.nan_to_num(torch.corrcoef(torch.cat([one, other], 1).T)[:4, 4:])
    best = max(permutations(range(4)), key=lambda order: float(sum(every[i, j] for i, j in enumerate(order))))
    found = match_features(one, other)
    assert found.tolist() == pytest.approx([float(every[i, j]) for i, j in enumerate(best)], abs=1e-9)
    assert match_features(one, one[:, [3, 1, 0, 2]] * 2 - 5).tolist() == pytest.approx([1, 1, 1, 1])


def test_locality_is_the_logarithm_of_the_number_of_parts() -> None:
    """Catches another base, shares that do not sum to 1, and 0 log 0."""
    shares = torch.zeros(2, 8)
    shares[0, 3] = 5
    shares[1, :4] = 5
    assert compute_locality(shares).tolist() == pytest.approx([0, math.log(4)])


def test_faithfulness_by_hand() -> None:
    """Catches squares for absolute errors, another class's logit, and a prediction that is not made again."""
    logits = torch.tensor([[2.0, 0], [1, 0], [0, 1], [1, 3]])
    found = measure_faithfulness(torch.tensor([2.0, -1, 0, 1]), logits, 0)
    assert (found.explained, found.error, found.same) == (pytest.approx(1 - 4 / 2), 0.5, 0.75)


def test_each_x_feature_moves_only_with_its_own_part(planted) -> None:
    """Catches an objective whose terms pull the wrong way, and a search that ends in a local minimum."""
    parts, z, found = planted
    moved = []
    for part in (0, 1):
        without = parts.clone()
        without[:, part] = 0
        change = ((found.encode(build_layer(without)) - found.encode(z)) * found.weights).abs().mean(0)
        moved.append(change / change.sum())
    shares = torch.stack(moved)
    own = shares.argmax(1)
    assert own.tolist() in ([0, 1], [1, 0])
    assert float(shares.gather(1, own[:, None]).min()) > 0.97
    errors = found.compute_errors(z)  # channel 5 never varies; 6 to 8 have nothing to do with the class
    assert float(errors[:5].max()) < 0.05
    assert float(errors[5:].min()) > 0.9
    logits = torch.stack([2 * parts[:, 0] + 1.5 * parts[:, 1], parts[:, 0]], 1)
    assert measure_faithfulness(found.predict(z), logits, 0).explained > 0.99


@pytest.mark.parametrize("hidden", [0, 4])
def test_heatmaps_sum_to_what_an_x_feature_adds(hidden: int) -> None:
    """Catches a lost factor of the places, another x-feature's gradient, and places in another order."""
    maps = torch.rand(30, 5, 3, 4, generator=generator()).double()
    z = maps.mean((2, 3))
    settings = XFeatureSettings(features=2, hidden=hidden, starts=1, steps=50)
    found = fit_x_features(z, z[:, 0] - z[:, 1], settings, generator=generator())
    drawn = found.draw_maps(maps)
    assert drawn.shape == (30, 2, 3, 4)
    torch.testing.assert_close(drawn.sum((2, 3)), found.encode(z) * found.weights)
    if not hidden:
        slow = maps[7, :, 2, 1] @ found.layers[0][1] / 12 * found.weights[1] * bool(found.encode(z)[7, 1] > 0)
        assert float(drawn[7, 1, 2, 1]) == pytest.approx(float(slow))


def test_the_same_generator_gives_the_same_x_features(planted) -> None:
    """Catches a draw from torch's own generator."""
    parts, z, found = planted
    torch.rand(5)  # moves the state of the generator that nothing here may draw from
    again = fit_x_features(z, 2 * parts[:, 0] + 1.5 * parts[:, 1], XFeatureSettings(features=2), generator=generator())
    assert all(torch.equal(one, two) for one, two in zip(found.layers, again.layers, strict=True))
    assert found.objective == again.objective


def test_the_rival_is_of_the_other_random_starts(planted) -> None:
    """The planted parts are found by both halves. Catches a rival that is the best fit itself, or a better one."""
    _, z, found = planted
    assert found.rival is not None
    assert found.rival.rival is None
    assert found.rival.objective >= found.objective
    assert not torch.equal(found.rival.layers[0], found.layers[0])
    matched = match_features(found.encode(z) * found.weights, found.rival.encode(z) * found.rival.weights)
    assert float(matched.min()) > 0.99
    single = fit_x_features(z, z[:, 0], XFeatureSettings(starts=1, steps=1), generator=generator())
    assert single.rival is None


def test_linear_x_features_may_be_rotated() -> None:
    """Catches a claim that linear x-features are determined: a rotation leaves every term as it was."""
    white = torch.linalg.qr(torch.randn(40, 2, generator=generator()).double()).Q
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]]).double()
    assert float(compute_pull_away(white @ turn)) == pytest.approx(0, abs=1e-12)
    v = torch.tensor([1.0, 2]).double()
    torch.testing.assert_close((white @ turn) @ (turn.T @ v), white @ v)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": 0}, "choose 1 to 20 x-features"),
        ({"features": 21}, "choose 1 to 20 x-features"),
        ({"eta": -1.0}, "eta=-1.0: give a number of at least 0"),
        ({"beta": math.nan}, "beta=nan"),
        ({"steps": 0}, "steps=0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message) -> None:
    """Catches a setting that reaches the search unchecked."""
    z = torch.rand(10, 3, generator=generator())
    with pytest.raises(ForetellError, match=message):
        fit_x_features(z, z[:, 0], XFeatureSettings(**settings))


def test_what_cannot_be_explained_is_refused() -> None:
    """Catches a division by a standard deviation of 0, and values that are not finite."""
    z = torch.rand(10, 3, generator=generator())
    with pytest.raises(ForetellError, match="output is the same for all images"):
        fit_x_features(z, torch.ones(10))
    with pytest.raises(ForetellError, match="layer's outputs are the same for all images"):
        fit_x_features(torch.ones(10, 3), z[:, 0])
    with pytest.raises(ForetellError, match="not finite"):
        fit_x_features(z / 0, z[:, 0])
    with pytest.raises(ForetellError, match="2 or more images"):
        fit_x_features(z[:1], z[:1, 0])
