"""The explanatory graph: a planted graph is found, the likelihood is that of the formula and never falls."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch import Tensor

from core.concepts.explanatory_graph import (
    FoundParts,
    GraphLayer,
    GraphSettings,
    _choose_parents,
    _move,
    choose_channels,
    compute_likelihoods,
    find_parts,
    learn_layer,
    list_places,
    normalise_activations,
)
from core.concepts.part_measures import estimate_gain, measure_instability
from core.errors import ForetellError

SIDE, IMAGES = 16, 40
FIRST, SECOND = torch.tensor([0.1, 0.2]).double(), torch.tensor([-0.15, 0.1]).double()


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw_blobs(centres: Tensor) -> Tensor:
    """Feature maps (I, h, w) with a blob around each centre (I, 2)."""
    squares = (list_places(SIDE, SIDE) - centres[:, None]).square().sum(-1)
    return torch.exp(-squares / (2 * 0.04**2)).view(-1, SIDE, SIDE)


@pytest.fixture(scope="module")
def planted() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Two things that move on their own; below, a channel that sees a part of each, and one that sees neither."""
    draws = generator(1)
    one, other = (
        torch.tensor(usual).double() + 0.24 * (torch.rand(IMAGES, 2, generator=draws).double() - 0.5)
        for usual in ((0.3, 0.3), (0.7, 0.6))
    )
    above = torch.stack([draw_blobs(one), draw_blobs(other)], 1)
    strength = torch.rand(IMAGES, 1, 1, generator=draws).double() + 0.5
    both = strength * draw_blobs(one + FIRST) + (2 - strength) * draw_blobs(other + SECOND)
    fixed = draw_blobs(torch.tensor([0.5, 0.85]).double().expand(IMAGES, 2))
    return above, torch.stack([both, fixed], 1), one, other


def test_a_planted_graph_is_found(planted) -> None:
    """Catches a parent of another part, a shift with the wrong sign, x for y, and a parent where there is none."""
    above, below, one, other = planted
    top = learn_layer(above, None, GraphSettings(parts=1), generator=generator())
    torch.testing.assert_close(top.usual, torch.stack([one.mean(0), other.mean(0)]), atol=0.02, rtol=0)
    assert top.parents == ((), ())
    found = find_parts(top, above, None)
    torch.testing.assert_close(found.places[:, 0], one, atol=0.7 / SIDE, rtol=0)
    layer = learn_layer(below, found, GraphSettings(parts=2, parents=1), generator=generator())
    assert sorted(layer.parents[:2]) == [(0,), (1,)]
    assert () in layer.parents[2:]
    offsets = [layer.usual[part] - top.usual[layer.parents[part][0]] for part in (0, 1)]
    expected = [FIRST if layer.parents[part] == (0,) else SECOND for part in (0, 1)]
    torch.testing.assert_close(torch.stack(offsets), torch.stack(expected), atol=0.03, rtol=0)
    places = find_parts(layer, below, found).places
    landmarks = torch.stack([one, other], 1)
    for part in (0, 1):
        own = landmarks[:, [layer.parents[part][0]]]
        activations = normalise_activations(below)
        maximum = list_places(SIDE, SIDE)[activations[:, 0].argmax(1)]
        stable, _ = measure_instability(places[:, part], own)
        assert stable < 0.5 / SIDE < 0.05 < measure_instability(maximum, own)[0]
    alone = learn_layer(below, None, GraphSettings(parts=2), generator=generator())
    activations, cells = normalise_activations(below), list_places(SIDE, SIDE)
    both = [compute_likelihoods(one, activations, cells, found)[:, [0]] for one in (layer, alone)]
    gain, error = estimate_gain(*both, activations[:, [0]])
    assert gain > max(0.2, 5 * error)


@pytest.mark.parametrize("seed", range(2))
def test_the_likelihood_never_falls(seed: int) -> None:
    """Catches a part that is moved against its shift, and parents that are taken though they explain less."""
    draws = generator(seed)
    above = find_parts(
        learn_layer(torch.rand(10, 3, 6, 5, generator=draws), None, GraphSettings(sweeps=3), generator=draws),
        torch.rand(10, 3, 6, 5, generator=draws),
        None,
    )
    maps = torch.randn(10, 4, 8, 6, generator=draws)
    for upper in (None, above):
        reached = learn_layer(maps, upper, GraphSettings(parts=3, spread=0.15, sweeps=8), generator=draws).likelihood
        assert 2 < len(reached) <= 8
        assert all(b >= a - 1e-9 for a, b in pairwise(reached))
        assert reached[-1] > reached[0]


def test_the_likelihood_is_that_of_the_formula() -> None:
    """Against loops over images, places, parts and parents with SciPy's normal density and λ = 1/M."""
    draws, settings = generator(), GraphSettings(parts=2, spread=0.2, background=0.3)
    maps = torch.randn(3, 2, 4, 5, generator=draws)
    usual, places_above = torch.rand(4, 2, generator=draws).double(), torch.rand(3, 3, 2, generator=draws).double()
    usual_above = torch.rand(3, 2, generator=draws).double()
    above = FoundParts(places_above, places_above - usual_above)
    parents = ((0, 2), (1,), (), (2, 1, 0))
    layer = GraphLayer(usual, parents, settings)
    activations, places = normalise_activations(maps), list_places(4, 5)
    found = compute_likelihoods(layer, activations, places, above)
    for channel in (0, 1):
        for i in range(3):
            total = 0.0
            for x in range(20):
                mixed = settings.background
                for part in (2 * channel, 2 * channel + 1):
                    own = parents[part]
                    shifted = [usual[part] + places_above[i, p] - usual_above[p] for p in own] or [usual[part]]
                    each = [multivariate_normal(mean.numpy(), 0.2**2 * np.eye(2)).pdf(places[x]) for mean in shifted]
                    mixed += math.prod(each) ** (1 / len(each))
                total += float(activations[i, channel, x]) * math.log(mixed / 3)
            assert float(found[i, channel]) == pytest.approx(total)


@pytest.mark.parametrize("seed", range(3))
def test_no_other_parent_explains_more(seed: int) -> None:
    """Against every other choice for each part, one part a channel. Catches parents that are never given up."""
    draws = generator(seed)
    shifts = 0.1 * torch.randn(12, 3, 2, generator=draws).double()
    above, maps = FoundParts(shifts, shifts), torch.randn(12, 6, 5, 5, generator=draws)
    layer = learn_layer(maps, above, GraphSettings(parts=1, parents=1, sweeps=6), generator=draws)
    activations, places = normalise_activations(maps), list_places(5, 5)
    best = compute_likelihoods(layer, activations, places, above).sum(0)
    for other in ((), (0,), (1,), (2,)):
        reached = compute_likelihoods(replace(layer, parents=(other,) * 6), activations, places, above).sum(0)
        assert bool((reached <= best + 1e-6).all())


def test_a_step_leaves_out_what_the_parents_explain() -> None:
    """Closed form: the activations' mean place, each image's less its shift. Catches a mean with the shifts in it."""
    draws = generator()
    shifts, maps = torch.rand(5, 1, 2, generator=draws).double(), torch.rand(5, 1, 4, 4, generator=draws)
    settings = GraphSettings(parts=1, background=1e-300)
    layer = GraphLayer(torch.tensor([[0.1, 0.1]]).double(), ((0,),), settings)
    activations, places = normalise_activations(maps), list_places(4, 4)
    moved = _move(layer, activations, places, FoundParts(shifts, shifts))
    weights = activations[:, 0] / activations.sum()
    expected = (weights[..., None] * (places - shifts)).sum((0, 1))
    torch.testing.assert_close(moved.usual[0], expected)


def test_parents_that_no_longer_help_are_given_up() -> None:
    """A part that is always at one place, under a parent that moves. Catches parents that are only exchanged."""
    maps = torch.zeros(6, 1, 4, 4)
    maps[:, 0, 1, 2] = 1
    shifts = 0.2 * torch.randn(6, 2, 2, generator=generator()).double()
    layer = GraphLayer(list_places(4, 4)[[6]], ((1,),), GraphSettings(parts=1))
    chosen = _choose_parents(layer, normalise_activations(maps), list_places(4, 4), FoundParts(shifts, shifts))
    assert chosen.parents == ((),)


def test_one_part_alone_is_at_the_mean_of_the_activations() -> None:
    """Closed form, as everything belongs to it. Catches negative activations that count, and rows for columns."""
    maps = torch.randn(5, 1, 6, 9, generator=generator())
    layer = learn_layer(maps, None, GraphSettings(parts=1, background=1e-30), generator=generator())
    weights = maps[:, 0].clamp(min=0).sum(0).double()
    x = float((weights.sum(0) * (torch.arange(9) + 0.5)).sum() / weights.sum()) / 9
    y = float((weights.sum(1) * (torch.arange(6) + 0.5)).sum() / weights.sum()) / 9
    assert layer.usual[0].tolist() == pytest.approx([x, y])


def test_a_part_is_found_where_it_is_active_and_expected() -> None:
    """The nearer of two equal maxima, and the expected place where nothing is active."""
    maps = torch.zeros(2, 1, 4, 4)
    maps[0, 0, 0, 0] = maps[0, 0, 3, 3] = 1
    layer = GraphLayer(torch.tensor([[0.5, 0.5]]).double(), ((0,),), GraphSettings(parts=1))
    shifts = torch.tensor([[[0.1, 0.2]], [[-0.1, 0.3]]]).double()
    found = find_parts(layer, maps, FoundParts(shifts, shifts))
    expected = torch.tensor([[0.875, 0.875], [0.4, 0.8]]).double()
    torch.testing.assert_close(found.places[:, 0], expected)
    torch.testing.assert_close(found.shifts, found.places - 0.5)


def test_instability_is_the_deviation_of_the_distance() -> None:
    """By hand. Catches the deviation of the place, which a moving object has too, and a mean of squares."""
    landmarks = torch.tensor([[[0.2, 0.2], [0, 0.2]], [[0.6, 0.2], [0.4, 0.2]], [[0.3, 0.2], [0.1, 0.2]]]).double()
    moving = landmarks[:, 0] + torch.tensor([0.0, 0.3])
    assert measure_instability(moving, landmarks) == pytest.approx((0, 0), abs=1e-6)
    swinging = landmarks[:, 0] + torch.tensor([[0.1, 0], [0.4, 0], [0.1, 0]])
    assert measure_instability(swinging, landmarks)[0] == pytest.approx(0.02**0.5)
    assert all(math.isnan(value) for value in measure_instability(moving[:2], landmarks[:2]))


def test_the_error_of_the_instability_is_the_jackknifes() -> None:
    """Against a loop that leaves out one image after another."""
    draws = generator()
    places, landmarks = torch.rand(9, 2, generator=draws).double(), torch.rand(9, 4, 2, generator=draws).double()
    without = []
    for i in range(9):
        kept = [k for k in range(9) if k != i]
        distances = np.linalg.norm(places[kept, None].numpy() - landmarks[kept].numpy(), axis=2)
        without.append(distances.std(0).mean())
    expected = math.sqrt(8 / 9 * ((np.array(without) - np.mean(without)) ** 2).sum())
    assert measure_instability(places, landmarks)[1] == pytest.approx(expected)


def test_the_gain_is_a_weighted_mean_with_its_robust_error() -> None:
    """Against statsmodels: HC1 of a mean over images, weighted by their activations. Catches equal weights."""
    from statsmodels.regression.linear_model import WLS

    draws = generator()
    activations = torch.rand(12, 3, 5, generator=draws).double() * torch.rand(12, 1, 1, generator=draws)
    own, other = torch.randn(2, 12, 3, generator=draws).double()
    weights = activations.sum((1, 2)).numpy()
    fitted = WLS((own - other).sum(1).numpy() / weights, np.ones(12), weights=weights).fit(cov_type="HC1")
    assert estimate_gain(own, other, activations) == pytest.approx((fitted.params[0], fitted.bse[0]))


def test_channels_of_the_class_are_chosen() -> None:
    """Catches channels that are active for everything, and ones that are never active for the class."""
    maps = torch.rand(8, 4, 3, 3, generator=generator()) * 0.1
    maps[:4, 2] += 1
    maps[:, 1] += 5
    maps[:4, 3] = -1
    own, others = torch.arange(4), torch.arange(4, 8)
    assert choose_channels(maps, own, others, 1) == (2,)
    assert set(choose_channels(maps, own, others, 9)) == {0, 1, 2}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parts": 0}, "parts=0: give a whole number of at least 1"),
        ({"parents": -1}, "parents=-1"),
        ({"spread": 0.0}, "spread=0.0: give a number above 0"),
        ({"background": math.nan}, "background=nan"),
        ({"parts": 17}, "17 or more places, and here are 3 and 16"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message) -> None:
    with pytest.raises(ForetellError, match=message):
        learn_layer(torch.rand(3, 1, 4, 4), None, GraphSettings(**settings))


def test_maps_that_say_nothing_are_refused() -> None:
    with pytest.raises(ForetellError, match="A channel is 0 in all images"):
        learn_layer(-torch.rand(3, 1, 4, 4), None)
    with pytest.raises(ForetellError, match="2 or more images"):
        learn_layer(torch.rand(1, 1, 4, 4), None)
