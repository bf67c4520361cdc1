"""Concept vectors, their test against chance, and effects, against closed forms, loops and the drawn scenes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.stats import ttest_ind
from torch import nn

from core.concepts.effect import compute_causal_effect, compute_observed_effect
from core.concepts.manipulation import fit_reader
from core.concepts.tcav import _Along, _test_layer, tcav
from core.concepts.vector import Activations, concept_vector
from core.errors import ForetellError
from core.network.classifier import Classifier
from data.scenes.generator import render
from data.scenes.splits import picture
from tests.core.networks import SIDE, awkward, pictures, unit
from tests.core.scenes import scene_net


def seeded(seed: int = 5) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_vector_is_that_of_a_logistic_regression_over_all_weights():
    """Slow re-implementation: Newton-free minimisation over the D weights themselves, numerical gradient."""
    one, other = torch.randn(12, 4, generator=seeded()) + 0.8, torch.randn(16, 4, generator=seeded(2))
    found = concept_vector(one, other, penalty=0.5)
    train = torch.cat([one[torch.arange(12) % 4 != 3], other[torch.arange(16) % 4 != 3]]).double()
    sign = np.array([1] * 9 + [-1] * 12)
    x = ((train - train.mean(0)) / train.std()).numpy()

    def loss(w):
        return np.logaddexp(0, -sign * (x @ w[:4] + w[4])).mean() + 0.5 / (2 * 21) * w[:4] @ w[:4]

    best = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-9}).x
    expected = best[:4] / np.linalg.norm(best[:4])
    np.testing.assert_allclose(found.direction.numpy(), expected, atol=2e-3)
    held = torch.cat([one[3::4], other[3::4]]).double().numpy()
    sorted_ = ((held - train.mean(0).numpy()) / float(train.std())) @ best[:4] + best[4] > 0
    assert found.accuracy == pytest.approx(np.mean(sorted_ == ([True] * 3 + [False] * 4)))


def by_decomposition(one, other, penalty):
    """Slow re-implementation: the pictures themselves, scaled, and a decomposition of them for this fit alone."""
    train = torch.cat([part[torch.arange(len(part)) % 4 != 3] for part in (one, other)]).double()
    held = torch.cat([part[3::4] for part in (one, other)]).double()
    sign = np.concatenate([np.full(len(part) - len(part[3::4]), s) for part, s in ((one, 1), (other, -1))])
    x = (train - train.mean(0)) / train.std()
    span = torch.linalg.svd(x, full_matrices=False).Vh
    z = (x @ span.T).numpy()

    def loss(w):
        margin = sign * (z @ w[:-1] + w[-1])
        pull = -sign / (1 + np.exp(margin)) / len(z)
        value = np.logaddexp(0, -margin).mean() + penalty / (2 * len(z)) * w[:-1] @ w[:-1]
        return value, np.append(pull @ z + penalty / len(z) * w[:-1], pull.sum())

    best = minimize(loss, np.zeros(z.shape[1] + 1), jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-12}).x
    weights = span.T @ torch.from_numpy(best[:-1])
    right = ((held - train.mean(0)) / train.std() @ weights + best[-1] > 0) == (
        torch.arange(len(held)) < len(one[3::4])
    )
    return weights / weights.norm(), float(right.double().mean())


def test_inner_products_say_what_the_images_do():
    """Of a wide layer, whose means are far from 0; the pictures of a fit are some of all, in any order."""
    x = torch.randn(60, 40_000, generator=seeded()) + 5 * torch.rand(40_000, generator=seeded(1))
    x[:20, :3_000] += 0.1
    gradient, seen = torch.randn(4, 40_000, generator=seeded(2)), Activations(x)
    slopes = seen.products(gradient)
    for seed, penalty in ((0, 1.0), (1, 1.0), (2, 0.01)):
        rows = torch.randperm(40, generator=seeded(seed))[:17] + 20
        found = seen.vector(torch.arange(20), rows, penalty)
        direction, accuracy = by_decomposition(x[:20], x[rows], penalty)
        np.testing.assert_allclose(found.combination @ x.double(), direction, atol=1e-6 * float(direction.abs().max()))
        np.testing.assert_allclose(slopes @ found.combination, gradient.double() @ direction, atol=1e-6)
        assert found.accuracy == accuracy


class Sum(nn.Module):
    """logit 0 = mean of channel 0 less that of channel 1 of its only layer; logit 1 its opposite."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Identity()

    def forward(self, x):
        mean = self.layer(x).mean((2, 3))
        return torch.stack([mean[:, 0] - mean[:, 1], mean[:, 1] - mean[:, 0]], 1)


def coloured(count: int, seed: int, **channels: float) -> torch.Tensor:
    images = torch.randn(count, 3, SIDE, SIDE, generator=seeded(seed)) * 0.3
    for name, shift in channels.items():
        images[:, int(name[1])] += shift
    return images


def test_a_concept_that_pushes_up_one_that_pushes_down_and_one_that_does_nothing():
    """The gradient is constant, so that each score is 1 or 0: by the sign of (v_0 - v_1) alone."""
    classifier = Classifier(Sum(), unit, name="sum")
    pool, images = coloured(80, 1), coloured(5, 2)
    for shift, expected in (({"c0": 1.0}, 1.0), ({"c1": 1.0}, 0.0)):
        (up,) = tcav(classifier, ["layer"], coloured(24, 3, **shift), pool, images, 0, concepts=19, generator=seeded())
        assert up.score == expected
        assert up.p_value == 1 / 20  # nothing is as strong but itself
        assert up.accuracy > 0.95
        (down,) = tcav(classifier, ["layer"], coloured(24, 3, **shift), pool, images, 1, concepts=2, generator=seeded())
        assert down.score == 1 - expected


def test_what_is_no_concept_is_found_to_be_one_as_seldom_as_it_should_be():
    """16 sets of noise: below .05 at most 3 (99 % of Bin(16, .05)); the paper's t test finds more than that."""
    classifier = Classifier(Sum(), unit, name="sum")
    pool, images = coloured(60, 1), coloured(2, 2)
    found = [
        tcav(classifier, ["layer"], coloured(16, 10 + k), pool, images, 0, runs=3, concepts=19, generator=seeded(k))[0]
        for k in range(16)
    ]
    assert sum(one.p_value <= 0.05 for one in found) <= 3
    assert sum(one.t_test <= 0.05 for one in found) > 3
    assert all(one.warnings for one in found if one.accuracy < 0.7)


def test_scores_that_are_all_alike_are_judged_in_silence():
    """The t test is scipy's, which warns of scores without a spread; where nothing varies there is nothing to test."""
    classifier, concept, images = Classifier(Sum(), unit, name="sum"), coloured(24, 3, c0=1.0), coloured(5, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = tcav(classifier, ["layer"], concept, coloured(80, 1), images, 0, concepts=9, generator=seeded())
    assert found.scores.tolist() == [1.0] * 10
    some, many = (torch.rand(count, generator=seeded()).double() for count in (10, 30))
    judged = _test_layer("layer", 0, _Along(some, some, 1.0), [_Along(part, part, 1.0) for part in many.split(10)], 1)
    assert judged.t_test == pytest.approx(ttest_ind(some.numpy(), many.numpy(), equal_var=False).pvalue, rel=1e-9)


def test_scores_are_directional_derivatives():
    """Slow re-implementation: each picture's logit a small step along the vector, on a network that bends."""
    classifier, images = awkward(), pictures(6, seed=3)
    concept, pool = pictures(12, seed=4) + 0.3, pictures(30, seed=5)
    runs = 3
    (found,) = tcav(classifier, ["conv1"], concept, pool, images, 2, runs=runs, concepts=2, generator=seeded())
    module = classifier._module
    read, pushed = [], []

    def keep(_, __, output):
        read.append(output.detach().clone())

    handle = module.conv1.register_forward_hook(keep)
    with torch.no_grad():
        for batch in (concept, pool):
            module(batch.clone())
    handle.remove()
    draws = torch.Generator().manual_seed(int(torch.randint(2**62, (1,), generator=seeded()).item()))
    for run in range(runs):
        order = torch.randperm(len(pool), generator=draws)
        direction = concept_vector(read[0], read[1][order[:12]]).direction.view(1, 8, SIDE, SIDE)
        logits = []
        for step in (0.0, 1e-3):
            handle = module.conv1.register_forward_hook(lambda *call, by=step * direction: call[2] + by)
            with torch.no_grad():
                logits.append(module(images.clone())[:, 2])
            handle.remove()
        pushed.append(float((logits[1] > logits[0]).double().mean()))
        assert found.scores[run].item() == pushed[-1]


def test_layers_pay_for_one_another():
    classifier = Classifier(nn.Sequential(nn.Identity(), Sum()), unit, name="two")
    arguments = (coloured(24, 3, c0=0.1), coloured(80, 1), coloured(5, 2), 0)
    (alone,) = tcav(classifier, ["0"], *arguments, concepts=9, generator=seeded())
    both = tcav(classifier, ["0", "1.layer"], *arguments, concepts=9, generator=seeded())
    assert alone.p_value < 0.5
    assert both[0].p_value == pytest.approx(min(1, 2 * alone.p_value))
    assert torch.equal(both[0].scores, both[1].scores)


def test_what_cannot_be_tested_says_so():
    classifier = awkward()
    with pytest.raises(ForetellError, match=r"no layer 'conv3'\. Did you mean 'conv"):
        tcav(classifier, ["conv3"], pictures(9), pictures(20), pictures(2), 0)
    with pytest.raises(ForetellError, match="3 images of the concept"):
        tcav(classifier, ["conv1"], pictures(3), pictures(20), pictures(2), 0)
    with pytest.raises(ForetellError, match="Target 7 is not a class"):
        tcav(classifier, ["conv1"], pictures(9), pictures(20), pictures(2), 7)
    with pytest.raises(ForetellError, match="same output for all"):
        concept_vector(torch.ones(9, 2), torch.ones(9, 2))
    rounded = torch.rand(500, generator=seeded()) * (1 + 1e-7 * torch.randn(2, 11, 500, generator=seeded()))
    with pytest.raises(ForetellError, match="same output for all"):
        concept_vector(*rounded)
    with pytest.raises(ForetellError, match="penalty=0"):
        concept_vector(torch.ones(9, 2), torch.ones(9, 2), penalty=0)


def test_effects_by_hand():
    """Paired and unpaired means with the errors of numpy."""
    one, other = torch.rand(7, 2, generator=seeded()), torch.rand(7, 2, generator=seeded(1))
    effect = compute_causal_effect(one, other)
    difference = (one - other).double().numpy()
    np.testing.assert_allclose(effect.value, difference.mean(0))
    np.testing.assert_allclose(effect.error, difference.std(0, ddof=1) / 7**0.5)
    seen = compute_observed_effect(torch.cat([one, other[:5]]), torch.tensor([1] * 7 + [0] * 5))
    np.testing.assert_allclose(seen.value, one.double().mean(0) - other[:5].double().mean(0))
    expected = np.sqrt(one.double().numpy().var(0, ddof=1) / 7 + other[:5].double().numpy().var(0, ddof=1) / 5)
    np.testing.assert_allclose(seen.error, expected)
    with pytest.raises(ForetellError, match="not of the same images"):
        compute_causal_effect(one, other[:5])
    with pytest.raises(ForetellError, match="at least two"):
        compute_observed_effect(one, torch.ones(7))


def test_the_sea_pushes_the_fish_up_by_intervention_and_by_its_vector():
    """On the scenes both are known: do(sea) against do(road) for the same objects, and the concept of the sea."""
    network = scene_net()
    fish = network.categories.index("fish")

    def inputs(scenes):
        return torch.stack([network.preprocess(scene.image) for scene in scenes])

    worlds = [picture("standard", 1, i) for i in range(20)]
    sea, road = (inputs([render(s.seed, category=s.label, context=c) for s in worlds]) for c in ("sea", "road"))
    effect = compute_causal_effect(network.probabilities(sea), network.probabilities(road))
    assert effect.value[fish] > 3 * effect.error[fish]
    other = [c for c in ("road", "meadow", "snow") for _ in range(14)]
    pool = inputs([render(900 + i, category="balloon", context=c) for i, c in enumerate(other)])
    concept = inputs([render(800 + i, category="balloon", context="sea") for i in range(16)])
    (found,) = tcav(network, [network.layers[-3]], concept, pool, road, fish, runs=4, concepts=39, generator=seeded())
    assert found.score > 0.9
    assert found.p_value <= 0.05


def test_the_reader_of_a_concept_does_not_read_the_class_that_goes_with_it():
    """Planted: 19 in 20 images of class 0 have the concept (a faint channel 0), and the class is bright in channel 2.

    Images that have the concept and the other class are read by the concept. Catches weights by frequency, with which
    the class, which is brighter, is read.
    """
    draws = torch.Generator().manual_seed(0)
    labels = torch.arange(400) % 2
    values = torch.where(torch.rand(400, generator=draws) < 0.05, 1 - labels, labels)
    x = 0.2 * torch.randn(400, 3, 8, 8, generator=draws)
    x[:, 0] += 0.04 * (values == 0).float()[:, None, None]
    x[:, 2] += (labels == 0).float()[:, None, None]
    reader = fit_reader(x, torch.stack([values, labels], 1), 2)
    rare = values != labels
    assert (reader.read(x[rare]) == values[rare]).float().mean() > 0.9
    nothing = fit_reader(x.roll(1, 0), torch.stack([values, values], 1), 2)
    assert (nothing.read(x) == values).float().mean() < 0.8
