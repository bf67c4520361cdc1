"""The prior against laplace-torch, and the probabilistic classifier on a real network."""

from __future__ import annotations

import io
import warnings
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from core.errors import ForetellError
from core.loading import import_torchvision
from core.sources import load
from core.teaching.kfac import KroneckerPrior, Moments, fit_prior, with_bias
from core.teaching.probabilistic import predict_with_sampled_heads, sample_heads

CLASSES, HIDDEN, IMAGES = 4, 5, 50


class Net(nn.Module):
    """Ends in a linear layer over (features, 1) without a bias: laplace-torch takes a bias for a block of its own."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, HIDDEN), nn.Tanh())
        self.last = nn.Linear(HIDDEN + 1, CLASSES, bias=False)

    def forward(self, x):
        z = self.body(x)
        return self.last(torch.cat([z, torch.ones(len(z), 1, dtype=z.dtype)], 1))


@pytest.fixture(scope="module")
def small():
    """(network, inputs (50, 6)) in float64."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Net().double().requires_grad_(True), torch.randn(IMAGES, 6, dtype=torch.float64)


@pytest.fixture(scope="module")
def oracle(small):
    """laplace-torch's Kronecker-factored Laplace of the same last layer, with a prior precision near 0."""
    import_torchvision()  # before laplace-torch imports it, for the sake of CPU builds
    laplace = pytest.importorskip("laplace")
    net, inputs = small
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = laplace.Laplace(
            net,
            "classification",
            subset_of_weights="last_layer",
            hessian_structure="kron",
            prior_precision=1e-9,
            last_layer_name="last",
        )
        fitted.fit(DataLoader(TensorDataset(inputs, torch.zeros(IMAGES, dtype=torch.long)), batch_size=IMAGES))
    return fitted


def ours(small, **settings):
    net, inputs = small
    moments = Moments(net.last.weight.detach())
    for part in inputs.split(7):
        moments.add(net.body(part).detach())
    return moments.prior(**settings)


def test_covariance_is_laplace_torchs(small, oracle):
    """Another package's inverse of the whole (24 x 24) precision, for differences of two rows: the limit tau -> 0."""
    prior = ours(small)
    whole = torch.linalg.inv(oracle.posterior_precision.to_matrix()).reshape(CLASSES, HIDDEN + 1, CLASSES, HIDDEN + 1)
    for c, a in ((0, 1), (3, 2)):
        e = torch.zeros(CLASSES, dtype=torch.float64)
        e[c], e[a] = 1, -1
        theirs = torch.einsum("i,imjn,j->mn", e, whole, e)
        torch.testing.assert_close(prior.scale(c, a) * prior.feature_covariance, theirs, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("tau", [0.5, 4.0])
def test_tau_on_laplace_torchs_factors(small, oracle, tau):
    """Its factors, n E[A] and E[Z], shared out as sqrt(n) each, with sqrt(tau) on either."""
    classes, features = oracle.H_facs.kfacs[0]
    prior = ours(small, tau=tau)
    root = IMAGES**0.5
    v = classes / root + tau**0.5 * torch.eye(CLASSES, dtype=torch.float64)
    u = features * root + tau**0.5 * torch.eye(HIDDEN + 1, dtype=torch.float64)
    torch.testing.assert_close(prior.class_covariance, torch.linalg.inv(v), rtol=1e-5, atol=1e-9)
    torch.testing.assert_close(prior.feature_covariance, torch.linalg.inv(u), rtol=1e-5, atol=1e-9)


def test_conditions_are_those_of_the_matrices(small):
    """numpy's condition numbers; V's on its range, where it is not singular by construction."""
    prior = ours(small)
    assert prior.conditions[0] == pytest.approx(np.linalg.cond(prior.feature_covariance.numpy()), rel=1e-6)
    singular = np.linalg.svd(prior.class_covariance.numpy(), compute_uv=False)
    assert prior.conditions[1] == pytest.approx(singular[0] / singular[-2], rel=1e-6)
    assert ours(small, damping=1.0).conditions[0] < prior.conditions[0]


def test_features_of_another_network_are_refused(small):
    moments = Moments(small[0].last.weight.detach())
    with pytest.raises(ForetellError, match="features have 9 columns, but the last layer takes 5"):
        moments.add(torch.zeros(3, 9))


def test_sampled_heads_have_the_covariances_of_the_prior(small):
    """Row and column covariances of 4,000 draws: E[D D^T] = tr(U^-1) V^+, E[D^T D] = tr(V^+) U^-1."""
    prior = ours(small, tau=1.0)
    draws = torch.stack(list(sample_heads(prior, 4000, torch.Generator().manual_seed(2)))) - prior.head
    rows = torch.einsum("skm,slm->kl", draws, draws) / len(draws)
    columns = torch.einsum("skm,skn->mn", draws, draws) / len(draws)
    for found, covariance, other in (
        (rows, prior.class_covariance, prior.feature_covariance),
        (columns, prior.feature_covariance, prior.class_covariance),
    ):
        expected = float(other.trace()) * covariance
        assert float((found - expected).norm() / expected.norm()) < 0.06
    with pytest.raises(ForetellError, match="at least 2 draws"):
        predict_with_sampled_heads(prior, torch.zeros(1, HIDDEN), 1, torch.Generator())


@pytest.fixture(scope="module")
def resnet20(real):
    """The head of the real ResNet-20, features of 4,000 training pictures and of 2,500 test pictures, their classes."""
    folder = real / "cifar10"
    classifier = load(f"{folder / 'resnet.py'}:build")
    training = map(Image.fromarray, np.load(folder / "cifar10_train_lossless_4000.npz")["X"])
    pool = classifier.features(torch.stack([classifier.preprocess(picture) for picture in training]))
    with zipfile.ZipFile(folder / "cifar10_test_jpeg_10000.zip") as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".jpg"))[::4]
        test = torch.stack([classifier.preprocess(Image.open(io.BytesIO(archive.read(name)))) for name in names])
    labels = torch.tensor([classifier.categories.index(name.split("/")[-2]) for name in names])
    return classifier.head, pool, classifier.features(test), labels


def accuracy(answers, labels):
    return float((answers.argmax(1) == labels).double().mean())


@pytest.mark.real
def test_the_probabilistic_classifier_is_as_accurate_as_the_network(resnet20):
    """Within a point; swapping U and V (the paper's footnote 5) loses many."""
    head, pool, features, labels = resnet20
    prior = fit_prior(head, pool.split(500))
    plain = accuracy(with_bias(features) @ head.T, labels)
    assert 0.7 < plain < 0.9
    answers, error = predict_with_sampled_heads(prior, features, 50, torch.Generator().manual_seed(0))
    assert abs(accuracy(answers, labels) - plain) < 0.01
    assert 0 < float(error.max()) < 0.1
    swapped = KroneckerPrior(
        head.reshape(head.shape[::-1]), prior.class_covariance, prior.feature_covariance, prior.images, prior.conditions
    )  # U^-1 over the rows and V^+ over the columns, as if W were stored features first
    heads = sample_heads(swapped, 50, torch.Generator().manual_seed(0))
    wrong = sum((with_bias(features) @ drawn.reshape(head.shape).T).softmax(1) for drawn in heads)
    assert accuracy(wrong, labels) < plain - 0.05


@pytest.mark.parametrize("tau", [0.0, 0.1])
def test_a_class_that_is_never_predicted_is_named(tau):
    """Of 4 classes one has a logit 200 below the others: the prior of its weights has the variance 0 at tau = 0."""
    draws = torch.Generator().manual_seed(0)
    features = torch.randn(60, 5, generator=draws, dtype=torch.float64)
    head = torch.randn(4, 6, generator=draws, dtype=torch.float64)
    assert fit_prior(head, [features]).certain == []
    head[2, -1] = -200.0
    prior = fit_prior(head, [features], tau=tau)
    assert prior.certain == ([2] if tau == 0 else [])
    assert (float(prior.class_covariance[2, 2]) < 1e-9) == (tau == 0)
