"""Prior, learner and examples, against slow re-implementations in weight space."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy import integrate, optimize
from scipy.special import expit

from core.errors import ForetellError
from core.teaching.examples import choose_examples, score_sets
from core.teaching.learner import expected_sigmoid, learn
from core.teaching.prior import fit_prior, with_bias

FEATURES, CLASSES, IMAGES = 5, 4, 60


@pytest.fixture(scope="module")
def world():
    """(head (4, 6), features (60, 5)) of a made-up last layer."""
    g = torch.Generator().manual_seed(3)
    head = torch.randn(CLASSES, FEATURES + 1, generator=g, dtype=torch.float64)
    return head, torch.randn(IMAGES, FEATURES, generator=g)


@pytest.mark.parametrize(("tau", "damping"), [(0.0, 0.0), (2.0, 0.0), (0.0, 0.3)])
def test_prior_against_its_definition(world, tau, damping):
    """U and V image by image, as SCIENCE defines them; V's difference variance by solving in the reachable space."""
    head, features = world
    prior = fit_prior(head, torch.split(features, 7), tau=tau, damping=damping)
    z = with_bias(features).numpy()
    p = np.exp(z @ head.numpy().T)
    p /= p.sum(1, keepdims=True)
    u = np.sqrt(IMAGES) * np.mean([np.outer(a, a) for a in z], 0)
    u += (np.sqrt(tau) + damping * np.diag(u).mean()) * np.eye(FEATURES + 1)
    v = np.sqrt(IMAGES) * np.mean([np.diag(q) - np.outer(q, q) for q in p], 0) + np.sqrt(tau) * np.eye(CLASSES)
    np.testing.assert_allclose(prior.feature_covariance.numpy(), np.linalg.inv(u), rtol=1e-9)
    e = np.zeros(CLASSES)
    e[1], e[3] = 1, -1
    # The limit tau -> 0 by a tiny ridge: e is orthogonal to the null space, so the ridge does not matter.
    s = e @ np.linalg.solve(v + 1e-9 * np.eye(CLASSES), e)
    assert prior.scale(1, 3) == pytest.approx(s, rel=1e-6)


def test_prior_refuses_dead_features_and_names_the_remedy(world):
    head, features = world
    dead = features.clone()
    dead[:, 2] = 0
    with pytest.raises(ForetellError, match=r"1 of 6 feature directions never vary.*damping"):
        fit_prior(head, [dead])
    assert torch.isfinite(fit_prior(head, [dead], damping=1e-3).feature_covariance).all()
    with pytest.raises(ForetellError, match="pool has no images"):
        fit_prior(head, [])


def weight_space(prior, examples, labels, image, classes, weight):
    """The learner as the paper has it: minimise over the weights, full Hessian, then integrate numerically."""
    c, a = classes
    z, at = with_bias(examples).numpy(), with_bias(image[None]).numpy()[0]
    m = (prior.head[c] - prior.head[a]).numpy()
    covariance = prior.scale(c, a) * prior.feature_covariance.numpy()
    precision = np.linalg.inv(covariance)
    y = np.array(labels)

    def loss(d):
        f = z @ d
        return weight * np.sum(np.logaddexp(0, f) - y * f) + 0.5 * (d - m) @ precision @ (d - m)

    def slope(d):
        return weight * z.T @ (expit(z @ d) - y) + precision @ (d - m)

    def curvature(d):
        p = expit(z @ d)
        return weight * (z * (p * (1 - p))[:, None]).T @ z + precision

    found = optimize.minimize(loss, m, jac=slope, hess=curvature, method="trust-exact", options={"gtol": 1e-11})
    posterior = np.linalg.inv(curvature(found.x))
    mean, variance = at @ found.x, at @ posterior @ at
    sd = np.sqrt(variance)
    probability, _ = integrate.quad(
        lambda t: expit(mean + sd * t) * np.exp(-t * t / 2) / np.sqrt(2 * np.pi), -12, 12, epsabs=1e-12
    )
    return mean, variance, probability


@pytest.mark.parametrize("weight", [1.0, 1 / 128, 128.0])
@pytest.mark.parametrize("damping", [0.0, 0.5])
def test_function_space_learner_is_the_weight_space_laplace(world, weight, damping):
    head, features = world
    prior = fit_prior(head, [features], damping=damping)
    labels, classes, image = [1.0, 1.0, 0.0, 0.0], (2, 0), features[50]
    sets = [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 8, 9, 9],
        [10, 11, 10, 11],
    ]  # with duplicates, and one set that contradicts itself
    for members in sets:
        examples = features[members]
        kernel = prior.kernel(examples, examples, *classes)[None]
        cross = prior.kernel(examples, image[None], *classes)[None, :, 0]
        learned = learn(
            kernel,
            prior.mean(examples, *classes)[None],
            torch.tensor(labels),
            cross,
            float(prior.mean(image[None], *classes)),
            float(prior.kernel(image[None], image[None], *classes)),
            weight=weight,
        )
        mean, variance, probability = weight_space(prior, examples, labels, image, classes, weight)
        assert float(learned.mean) == pytest.approx(mean, rel=1e-6, abs=1e-7)
        assert float(learned.variance) == pytest.approx(variance, rel=1e-6)
        assert float(learned.probability) == pytest.approx(probability, abs=1e-7)


def test_expected_sigmoid_by_monte_carlo():
    g = torch.Generator().manual_seed(0)
    draws = torch.sigmoid(0.7 + 3.0 * torch.randn(400_000, generator=g, dtype=torch.float64))
    value = float(expected_sigmoid(torch.tensor(0.7).double(), torch.tensor(9.0).double()))
    assert value == pytest.approx(float(draws.mean()), abs=5 * float(draws.std()) / 400_000**0.5)


def test_batched_scores_equal_one_by_one(world):
    head, features = world
    prior = fit_prior(head, [features])
    sets = torch.tensor(list(itertools.combinations(range(6), 4)))
    together = score_sets(prior, features, sets, features[40], (0, 1), weight=1.0)
    alone = torch.cat([score_sets(prior, features, s[None], features[40], (0, 1), weight=1.0) for s in sets])
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-12)


def choose(world, policy, **settings):
    head, features = world
    prior = fit_prior(head, [features])
    return choose_examples(
        prior,
        features,
        torch.arange(0, 12),
        torch.arange(12, 24),
        features[50],
        (2, 0),
        generator=torch.Generator().manual_seed(1),
        policy=policy,
        **settings,
    )


def test_policies_pick_what_they_say(world):
    best, worst, random = (choose(world, p) for p in ("best", "unhelpful", "random"))
    assert worst.p_learner < random.p_learner < best.p_learner
    assert best.p_prior == worst.p_prior
    threshold = (random.p_learner + best.p_learner) / 2
    first = choose(world, "first", threshold=threshold)
    assert threshold < first.p_learner <= best.p_learner
    assert choose(world, "first", threshold=0.999999) is None


def test_a_set_is_two_and_two_without_repeats(world):
    for policy in ("best", "random", "unhelpful"):
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


def test_too_few_images_and_unknown_policy_are_refused(world):
    head, features = world
    prior = fit_prior(head, [features])
    g = torch.Generator().manual_seed(1)
    with pytest.raises(ForetellError, match="The pool has 1 usable images"):
        choose_examples(prior, features, torch.arange(1), torch.arange(9), features[50], (2, 0), generator=g)
    with pytest.raises(ForetellError, match="Unknown teaching policy 'worst'"):
        choose(world, "worst")
