"""Prior, learner and examples, against slow re-implementations in weight space."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy import integrate, optimize, stats
from scipy.special import expit
from sklearn.covariance import ledoit_wolf

from core.errors import ForetellError
from core.teaching.kfac import fit_prior, with_bias
from core.teaching.learner import compute_expected_sigmoid, learn
from core.teaching.scoring import Scorer, score_sets

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


@pytest.mark.parametrize("images", [4, 30])
def test_a_pool_that_does_not_span_the_features_is_damped_by_ledoit_and_wolf(world, images):
    """Fewer images than features, and a feature that never varies; the share is scikit-learn's of the same features."""
    head, features = world
    dead = features[:images].clone()
    dead[:, 2] = 0
    prior = fit_prior(head, torch.split(dead, 3))
    z = with_bias(dead).numpy()
    share = ledoit_wolf(z, assume_centered=True)[1]
    assert prior.damping == pytest.approx(share / (1 - share), rel=1e-9)
    explicit = fit_prior(head, [dead], damping=prior.damping)
    torch.testing.assert_close(prior.feature_covariance, explicit.feature_covariance)


def test_damping_is_added_only_where_it_is_needed(world):
    head, features = world
    assert fit_prior(head, [features]).damping == 0
    assert fit_prior(head, [features[:3]], tau=1.0).damping == 0
    assert fit_prior(head, [features], damping=0.3).damping == 0.3
    one_image = fit_prior(head, [features[:1]])  # nothing scatters: the least shrinkage
    assert one_image.damping == pytest.approx(0.001 / 0.999)
    with pytest.raises(ForetellError, match="no inverse with this damping"):
        fit_prior(head, [features[:3]], damping=1e-12)
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

    mode = optimize.minimize(loss, m, jac=slope, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-15}).x
    for _ in range(5):  # its last digits
        mode = mode - np.linalg.solve(curvature(mode), slope(mode))
    posterior = np.linalg.inv(curvature(mode))
    mean, variance = at @ mode, at @ posterior @ at
    return mean, variance, integrated(mean, np.sqrt(variance))


def integrated(mean, sd):
    """E[sigmoid(mean + sd z)] by adaptive quadrature over z, broken where the sigmoid bends."""
    value, _ = integrate.quad(
        lambda t: expit(mean + sd * t) * np.exp(-t * t / 2) / np.sqrt(2 * np.pi),
        -12,
        12,
        epsabs=1e-13,
        limit=500,
        points=[np.clip(-mean / sd, -11, 11)],
    )
    return value


SETS = {
    "balanced": ([0, 1, 2, 3], [1, 1, 0, 0]),
    "unbalanced": ([4, 5, 6, 7, 12], [1, 1, 1, 1, 0]),
    "one": ([13], [1]),
    "duplicates": ([8, 8, 9, 9], [1, 1, 0, 0]),
    "contradiction": ([10, 11, 10, 11], [1, 1, 0, 0]),
}


def learned_from(prior, examples, labels, image, classes, weight, **settings):
    """`learn` for one set of examples (n, M)."""
    return learn(
        prior.kernel(examples, examples, *classes)[None],
        prior.mean(examples, *classes)[None],
        torch.tensor(labels),
        prior.kernel(examples, image[None], *classes)[None, :, 0],
        float(prior.mean(image[None], *classes)),
        float(prior.kernel(image[None], image[None], *classes)),
        weight=weight,
        **settings,
    )


def agrees(learned, expected):
    mean, variance, probability = expected
    assert float(learned.mean) == pytest.approx(mean, rel=1e-8, abs=1e-8)
    assert float(learned.variance) == pytest.approx(variance, rel=1e-8)
    assert float(learned.probability) == pytest.approx(probability, abs=1e-8)


@pytest.mark.parametrize("weight", [1.0, 1 / 128, 128.0])
@pytest.mark.parametrize("damping", [0.0, 0.5])
@pytest.mark.parametrize("kind", SETS)
def test_function_space_learner_is_the_weight_space_laplace(world, weight, damping, kind):
    head, features = world
    prior = fit_prior(head, [features], damping=damping)
    members, labels = SETS[kind]
    given = prior, features[members], labels, features[50], (2, 0), weight
    agrees(learned_from(*given), weight_space(*given))


def test_separable_examples_keep_the_prior(world):
    """Far apart and weighty: a plain logistic regression would run to infinity; the prior holds it."""
    head, features = world
    prior = fit_prior(head, [features], damping=0.5)
    direction = (prior.head[2] - prior.head[0])[:-1].float()
    examples = torch.stack([40 * direction, 30 * direction, -30 * direction, -40 * direction]) + features[:4]
    given = prior, examples, [0, 0, 1, 1], features[50], (2, 0), 128.0
    agrees(learned_from(*given), weight_space(*given))


@pytest.mark.parametrize("weight", [1.0, 128.0])
def test_copies_that_are_equal_are_one_example_of_their_weight(world, weight):
    head, features = world
    prior = fit_prior(head, [features])
    sets, labels = torch.tensor([[0, 1, 2, 3], [4, 1, 2, 5]]), torch.tensor([1.0, 1.0, 0.0, 0.0])
    whole = Scorer(prior, features, features[50], (2, 0), weight=weight).score(sets, labels)
    copied = features[:, None].expand(-1, 3, -1)
    split = Scorer(prior, copied, features[50], (2, 0), weight=weight).score(sets, labels)
    torch.testing.assert_close(split, whole, rtol=1e-9, atol=1e-11)


def test_copies_that_differ_enter_one_by_one(world):
    """Against the weight-space learner given every copy as an example of its own."""
    head, features = world
    prior = fit_prior(head, [features])
    copies = features[:8, None] + 0.3 * torch.randn(8, 3, FEATURES, generator=torch.Generator().manual_seed(5))
    scorer = Scorer(prior, copies, features[50], (2, 0), weight=6.0)
    found = float(scorer.score(torch.tensor([[0, 5, 2, 7]]), torch.tensor([1.0, 1.0, 0.0, 0.0])))
    examples = copies[[0, 5, 2, 7]].flatten(0, 1)
    expected = weight_space(prior, examples, [1] * 6 + [0] * 6, features[50], (2, 0), 2.0)
    assert found == pytest.approx(expected[2], abs=1e-8)


@pytest.mark.parametrize(("weight", "bound"), [(1.0, 0.005), (128.0, 0.01)])
def test_the_size_of_the_laplace_error(world, weight, bound):
    """Against the true posterior of the weights, by importance sampling from a wide t around the mode."""
    head, features = world
    prior = fit_prior(head, [features])
    c, a = classes = (2, 0)
    labels, examples, image = np.array([1.0, 1, 0, 0]), features[:4], features[53]
    z, at = with_bias(examples).numpy(), with_bias(image[None]).numpy()[0]
    m = (head[c] - head[a]).numpy()
    covariance = prior.scale(c, a) * prior.feature_covariance.numpy()
    rng = np.random.default_rng(0)
    start = stats.multivariate_normal(m, covariance)
    # Adapted in four rounds from the prior; the last round is the estimate, and independent of the others.
    centre, spread = m, covariance
    for _ in range(5):
        proposal = stats.multivariate_t(centre, 1.5 * spread, df=6)
        d = proposal.rvs(400_000, random_state=rng)
        f = d @ z.T
        log = weight * (labels * f - np.logaddexp(0, f)).sum(1) + start.logpdf(d) - proposal.logpdf(d)
        q = np.exp(log - log.max())
        q /= q.sum()
        centre = q @ d
        spread = (d - centre).T @ (q[:, None] * (d - centre)) + 1e-6 * covariance
    true = q @ expit(d @ at)
    error = np.sqrt((q**2 * (expit(d @ at) - true) ** 2).sum())
    assert error < 1e-3
    laplace = float(learned_from(prior, examples, labels.tolist(), image, classes, weight).probability)
    assert abs(laplace - true) < bound + 4 * error


@pytest.mark.parametrize("mean", [0.0, 0.7, -5.0, 30.0])
@pytest.mark.parametrize("sd", [0.3, 1.99, 2.01, 10.0, 100.0])
def test_expected_sigmoid_by_adaptive_quadrature(mean, sd):
    """Hermite points alone are wrong in the second digit where the Gaussian is wide."""
    value = float(
        compute_expected_sigmoid(torch.tensor([mean], dtype=torch.float64), torch.tensor([sd**2], dtype=torch.float64))
    )
    assert value == pytest.approx(integrated(mean, sd), abs=1e-12)


def test_the_papers_draws_lie_around_the_integral(world):
    head, features = world
    prior = fit_prior(head, [features])
    given = prior, features[:4], [1, 1, 0, 0], features[50], (2, 0), 128.0
    normal = torch.randn(100_000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    drawn, exact = learned_from(*given, normal=normal), learned_from(*given)
    assert 0 < float(drawn.error) < 1e-3
    assert float(drawn.probability) == pytest.approx(float(exact.probability), abs=4 * float(drawn.error))


def test_expected_sigmoid_by_monte_carlo():
    g = torch.Generator().manual_seed(0)
    draws = torch.sigmoid(0.7 + 3.0 * torch.randn(400_000, generator=g, dtype=torch.float64))
    value = float(compute_expected_sigmoid(torch.tensor(0.7).double(), torch.tensor(9.0).double()))
    assert value == pytest.approx(float(draws.mean()), abs=5 * float(draws.std()) / 400_000**0.5)


def test_batched_scores_equal_one_by_one(world):
    head, features = world
    prior = fit_prior(head, [features])
    sets = torch.tensor(list(itertools.combinations(range(6), 4)))
    together = score_sets(prior, features, sets, features[40], (0, 1), weight=1.0)
    alone = torch.cat([score_sets(prior, features, s[None], features[40], (0, 1), weight=1.0) for s in sets])
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-12)
