"""Influence in the last layer, against retraining it; the nearest images, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.stats import spearmanr

from core.teaching.examples import choose_examples
from core.teaching.kfac import KroneckerPrior, Moments, fit_prior, with_bias
from core.teaching.policies import influence, nearest
from core.teaching.policies.influence import compute_influence
from core.teaching.policies.nearest import compute_distances
from core.teaching.scoring import score_sets

WIDTH, CLASSES, IMAGES, RIDGE = 4, 3, 90, 0.05


def train(features, labels, weights, *, ridge=0.0, begin=None):
    """Softmax regression by Newton-CG on its exact Hessian, (K, M + 1): an oracle without the engine's code."""
    z = np.hstack([features, np.ones((len(features), 1))])
    hot = np.eye(CLASSES)[labels]
    shape = (CLASSES, z.shape[1])

    def forward(w):
        logits = z @ w.reshape(shape).T
        logits -= logits.max(1, keepdims=True)
        p = np.exp(logits)
        total = p.sum(1, keepdims=True)
        return logits - np.log(total), p / total

    def loss(w):
        return -(weights * (forward(w)[0] * hot).sum(1)).sum() + ridge / 2 * w @ w

    def slope(w):
        return ((weights[:, None] * (forward(w)[1] - hot)).T @ z).ravel() + ridge * w

    def curvature(w):
        return exact_hessian(z, forward(w)[1], weights) + ridge * np.eye(len(w))

    w = np.zeros(CLASSES * z.shape[1]) if begin is None else begin.ravel()
    for _ in range(60):
        step = np.linalg.lstsq(curvature(w), -slope(w), rcond=1e-12)[0]
        while loss(w + step) > loss(w) + 1e-12:
            step = step / 2
        w = w + step
        if np.abs(step).max() < 1e-12:
            break
    assert np.abs(slope(w)).max() < 1e-9
    return w.reshape(shape)


def exact_hessian(z, p, weights):
    """The sum of (diag(p) - p p^T) (x) z z^T, one image at a time."""
    total = 0.0
    for row, q, weight in zip(z, p, weights, strict=True):
        total = total + weight * np.kron(np.diag(q) - np.outer(q, q), np.outer(row, row))
    return total


@pytest.fixture(scope="module")
def problem():
    """(features, labels, images, trained layer): three overlapping clouds, and eight images to explain."""
    rng = np.random.default_rng(4)
    labels = np.arange(IMAGES) % CLASSES
    features = rng.normal(size=(IMAGES, WIDTH)) + 1.2 * np.eye(CLASSES, WIDTH)[labels]
    return features, labels, rng.normal(size=(8, WIDTH)), train(features, labels, np.ones(IMAGES), ridge=RIDGE)


@pytest.fixture(scope="module")
def left_out(problem):
    """How much each pool image raises the logit of class 0 of each image, (8, N): by training without it."""
    features, labels, images, whole = problem
    x = np.hstack([images, np.ones((8, 1))])
    changes = []
    for i in range(IMAGES):
        weights = np.ones(IMAGES)
        weights[i] = 0.0
        without = train(features, labels, weights, ridge=RIDGE, begin=whole)
        changes.append(x @ (whole[0] - without[0]))
    return np.stack(changes, 1)


def test_the_oracle_is_scipys_softmax_regression(problem):
    """Catches a trainer that does not reach the minimum: L-BFGS of scipy ends at the same loss."""
    features, labels, _, whole = problem
    z, hot = np.hstack([features, np.ones((IMAGES, 1))]), np.eye(CLASSES)[labels]

    def loss(w):
        logits = z @ w.reshape(whole.shape).T
        return (np.logaddexp.reduce(logits, 1) - (logits * hot).sum(1)).sum() + RIDGE / 2 * w @ w

    found = minimize(loss, np.zeros(whole.size), method="L-BFGS-B", options={"ftol": 1e-15, "maxiter": 5000})
    np.testing.assert_allclose(whole.ravel(), found.x, atol=2e-3)
    assert loss(whole.ravel()) <= found.fun + 1e-9


def test_the_formula_with_the_exact_hessian_ranks_as_leaving_out_does(problem, left_out):
    """Catches a wrong formula or sign in the docstring, which is written out here for an exact H: rank r above .99."""
    features, labels, images, whole = problem
    z = np.hstack([features, np.ones((IMAGES, 1))])
    p = np.asarray(torch.from_numpy(z @ whole.T).softmax(1))
    hessian = exact_hessian(z, p, np.ones(IMAGES)) + RIDGE * np.eye(whole.size)
    of_loss = np.stack([np.kron(q - np.eye(CLASSES)[y], row) for q, y, row in zip(p, labels, z, strict=True)])
    for image, expected in zip(images, left_out, strict=True):
        of_logit = np.kron(np.eye(CLASSES)[0], np.append(image, 1.0))
        found = -of_loss @ np.linalg.solve(hessian, of_logit)
        assert spearmanr(found, expected).statistic > 0.99


def test_the_kfac_influence_ranks_nearly_as_leaving_out_does(problem, left_out):
    """Catches U and V exchanged, a mistaken label and a flipped sign: mean rank r with retraining above .8."""
    features, labels, images, whole = (torch.from_numpy(array) for array in problem)
    prior = fit_prior(whole, [features])
    found = [compute_influence(prior, features, labels, image, 0) for image in images]
    ranks = [spearmanr(one, expected).statistic for one, expected in zip(found, left_out, strict=True)]
    assert np.mean(ranks) > 0.8
    assert min(ranks) > 0.6


def test_influence_is_the_slope_of_retraining_where_kfac_is_exact():
    """Catches a wrong scale as well: where every p is alike H is exactly V (x) U, and the slope is a closed limit.

    Each image has each label once, so that the trained layer is zero; one of the three copies is weighted by
    1 +- e, and the layer trained again. The logit is taken minus the mean of all, which softmax leaves free.
    """
    rng = np.random.default_rng(2)
    base = rng.normal(size=(12, WIDTH))
    features, labels = np.repeat(base, CLASSES, 0), np.tile(np.arange(CLASSES), len(base))
    image, step = rng.normal(size=WIDTH), 1e-4
    prior = fit_prior(torch.zeros(CLASSES, WIDTH + 1, dtype=torch.float64), [torch.from_numpy(features)])
    found = compute_influence(
        prior, torch.from_numpy(features), torch.from_numpy(labels), torch.from_numpy(image), 1
    ).numpy()
    for i in (0, 1, 10, 20, 35):
        ends = []
        for sign in (1, -1):
            weights = np.ones(len(features))
            weights[i] += sign * step
            logits = train(features, labels, weights) @ np.append(image, 1.0)
            ends.append(logits[1] - logits.mean())
        assert found[i] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5)


def test_influence_is_the_kronecker_formula_written_out(monkeypatch):
    """Catches lost images where the pool is taken in parts, and rounding where p is almost 1: by the full matrix."""
    g = torch.Generator().manual_seed(5)
    head = 3 * torch.randn(CLASSES, WIDTH + 1, generator=g, dtype=torch.float64)
    features = torch.randn(37, WIDTH, generator=g, dtype=torch.float64)
    labels = torch.randint(CLASSES, (37,), generator=g)
    image = torch.randn(WIDTH, generator=g, dtype=torch.float64)
    prior = fit_prior(head, [features], tau=0.3)
    inverse = torch.kron(prior.class_covariance, prior.feature_covariance)
    z = with_bias(features)
    residual = (z @ head.T).softmax(1) - torch.eye(CLASSES, dtype=torch.float64)[labels]
    gradients = (residual[:, :, None] * z[:, None, :]).flatten(1)
    of_logit = torch.kron(torch.eye(CLASSES, dtype=torch.float64)[2], with_bias(image[None])[0])
    expected = -(gradients @ inverse @ of_logit)
    monkeypatch.setattr(influence, "ENTRIES", 11 * (WIDTH + 1))
    found = compute_influence(prior, features, labels, image, 2)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
    # One class is certain to the last digit: p_1 - 1 is e^-40, which 1 - p would round to 0.
    sure = KroneckerPrior(
        torch.tensor([[0.0, 0.0], [40.0, 0.0], [-60.0, 0.0]], dtype=torch.float64),
        torch.eye(2, dtype=torch.float64),
        torch.tensor([[2.0, -1, -1], [-1, 2, -1], [-1, -1, 2]], dtype=torch.float64) / 3,
        1,
        (1.0, 1.0),
    )
    one = torch.ones(1, 1)
    found = float(compute_influence(sure, one, torch.tensor([1]), one[0], 1))
    assert found == pytest.approx(2 * np.exp(-40.0), rel=1e-9, abs=0)


@pytest.fixture(scope="module")
def world():
    """(prior, features (60, 5)) of a made-up last layer."""
    g = torch.Generator().manual_seed(3)
    head = torch.randn(4, 6, generator=g, dtype=torch.float64)
    features = torch.randn(60, 5, generator=g)
    return fit_prior(head, [features]), features


def choose(world, policy, *, targets=range(12), alternatives=range(12, 24), seed=1, image=None, **settings):
    prior, features = world
    return choose_examples(
        prior,
        features,
        torch.tensor(list(targets)),
        torch.tensor(list(alternatives)),
        (features if features.ndim == 2 else features.mean(1))[50] if image is None else image,
        (2, 0),
        generator=torch.Generator().manual_seed(seed),
        policy=policy,
        **settings,
    ).chosen


def test_the_influential_set_is_the_two_and_two_that_help_most(world):
    """Catches opponents in place of proponents, and the target's label given to the foil's images; by brute force."""
    prior, features = world
    chosen = choose(world, "influence")
    found = {}
    for side, label in ((range(12), 2), (range(12, 24), 0)):
        for i in side:
            found[i] = float(compute_influence(prior, features[[i]], torch.tensor([label]), features[50], 2))
    best = [sorted(sorted(side, key=found.get)[-2:]) for side in (range(12), range(12, 24))]
    assert chosen.indices == (*best[0], *best[1])
    assert chosen.policy == "influence"


def test_influential_examples_teach_the_learner_more_than_chance(world):
    """Catches a sign that argues against the prediction: to first order, helpful examples raise the learner's P."""
    _, features = world
    ranks = [choose(world, "influence", image=features[k]).rank for k in range(24, 60)]
    assert np.mean(ranks) > 0.75


def test_the_nearest_are_those_that_were_planted(world):
    """Catches distances in another space or to the wrong image: four images are moved next to the target."""
    prior, features = world
    moved = features.clone()
    step = torch.randn(5, generator=torch.Generator().manual_seed(1))
    for k, i in enumerate((3, 9, 14, 23)):
        moved[i] = moved[50] + (-0.05) ** (k % 2) * step / 50
    assert choose((prior, moved), "nearest").indices == (3, 9, 14, 23)


def test_the_nearest_are_those_of_brute_force(world, monkeypatch):
    """Catches lost images where the pool is taken in parts; distances one by one in NumPy."""
    _, features = world
    monkeypatch.setattr(nearest, "ENTRIES", 35)
    own = [float(np.linalg.norm(row - features[50].double().numpy())) for row in features.double().numpy()]
    np.testing.assert_allclose(compute_distances(features, features[50]), own, rtol=1e-12)
    expected = [sorted(sorted(side, key=own.__getitem__)[:2]) for side in (range(12), range(12, 24))]
    assert choose(world, "nearest").indices == (*expected[0], *expected[1])


@pytest.mark.parametrize("policy", ["influence", "nearest"])
def test_equal_images_are_taken_in_the_order_of_the_pool_whatever_the_seed(world, policy):
    """Catches ties that rounding or a random draw decides: half of the pool are duplicates of the other half."""
    prior, features = world
    doubled = features.clone()
    doubled[6:12], doubled[18:24] = features[:6], features[12:18]
    found = {choose((prior, doubled), policy, seed=seed).indices for seed in range(3)}
    (chosen,) = found
    assert chosen[1] == chosen[0] + 6  # the best and its duplicate: together they are the first two
    assert chosen[3] == chosen[2] + 6
    alone = torch.zeros(60, 5)  # all alike
    assert choose((prior, alone), policy).indices == (0, 1, 12, 13)


@pytest.mark.parametrize("policy", ["influence", "nearest"])
def test_the_facts_of_the_set_are_the_learners(world, policy):
    """Catches facts of another set: the probability by the learner on its own, the rank by every set's probability."""
    prior, features = world
    chosen = choose(world, policy, sets=None)
    p = score_sets(prior, features, torch.tensor([chosen.indices]), features[50], (2, 0), weight=128.0)
    assert chosen.p_learner == pytest.approx(float(p), abs=1e-10)
    assert chosen.rank <= choose(world, "best", sets=None).rank == 1.0
    assert chosen.p_learner <= choose(world, "best", sets=None).p_learner
    assert chosen.scored == 66 * 66


@pytest.mark.parametrize("policy", ["influence", "nearest"])
def test_an_image_counts_with_the_mean_of_its_copies(world, policy):
    """Catches copies mixed up between images, and a choice by the first copy alone; copy by copy."""
    prior, features = world
    noise = 3 * torch.randn(60, 3, 5, generator=torch.Generator().manual_seed(9))
    copied, image = features[:, None] + noise, features[50]
    labels = torch.tensor([2] * 12 + [0] * 12)
    if policy == "influence":
        found = sum(compute_influence(prior, copied[:24, k], labels, image, 2) for k in range(3)).tolist()
    else:
        found = [-sum(float((copy - image).norm()) for copy in copies) for copies in copied[:24]]
    expected = [sorted(sorted(side, key=found.__getitem__)[-2:]) for side in (range(12), range(12, 24))]
    assert choose((prior, copied), policy, image=image, sets=5).indices == (*expected[0], *expected[1])
    assert choose(world, policy, image=image, sets=5).indices != (*expected[0], *expected[1])


def test_a_prior_of_moments_with_one_class_never_seen_still_has_influences(world):
    """Catches NaN where V is singular beyond the all-ones direction: a class whose probability is always nearly 0."""
    head = torch.zeros(3, 6, dtype=torch.float64)
    head[2, 5] = -800.0
    moments = Moments(head)
    moments.add(world[1])
    found = compute_influence(moments.prior(), world[1], torch.zeros(60, dtype=torch.long), world[1][50], 0)
    assert bool(torch.isfinite(found).all())
    assert float(found.abs().max()) > 0
