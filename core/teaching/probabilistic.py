"""The classifier with uncertain weights in its last layer: predictions averaged over the KFAC posterior.

Folke et al. 2021 (arXiv:2106.09106), appendix A: the check that the prior is that of this network. Its accuracy must be
close to the network's own; it is not where U and V are swapped, as in Ritter et al. 2018 (the paper's footnote 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from core.errors import ForetellError
from core.teaching.kfac import KroneckerPrior, with_bias

RANKS = (1, 5)
"""A prediction is right at rank k if the true class is among the k likeliest."""
RESAMPLES = 100
"""Sets of batches that are drawn again from the batches: the standard deviation they estimate is right to about 7%."""
BATCHES = 25
"""Parts of the draws, each with its own average, that are drawn again."""


@dataclass(frozen=True)
class SampledAccuracy:
    """Accuracy of the classifier averaged over sampled heads, at ranks 1 and 5 (`RANKS`).

    Attributes
    ----------
    accuracy, error
        Shares of images, and their Monte Carlo standard errors: how far other draws of the heads would be from these.
    correct
        (N,) bool: whether the likeliest class is the true one.
    """

    accuracy: tuple[float, float]
    error: tuple[float, float]
    correct: Tensor


def sample_heads(prior: KroneckerPrior, samples: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Draw W ~ MN(W*, V^+, U^-1), each (K, M + 1) float64: W* + v Q u^T with Q standard normal."""
    v, u = _root(prior.class_covariance), _root(prior.feature_covariance)
    for _ in range(samples):
        normal = torch.randn(prior.head.shape, generator=generator, dtype=torch.float64)
        yield prior.head + v @ normal @ u.T


def predict_with_sampled_heads(
    prior: KroneckerPrior, features: Tensor, samples: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Average softmax predictions (N, K) for features (N, M) over ``samples`` heads, with their standard errors."""
    if samples < 2:
        raise ForetellError(f"samples={samples}: an average with a standard error needs at least 2 draws.")
    z = with_bias(features)
    total, square = torch.zeros(2, len(z), len(prior.head), dtype=torch.float64)
    for head in sample_heads(prior, samples, generator):
        predictions = (z @ head.T).softmax(1)
        total += predictions
        square += predictions * predictions
    mean = total / samples
    variance = (square / samples - mean * mean).clamp(min=0) / (samples - 1)
    return mean, variance.sqrt()


def measure_sampled_accuracy(
    prior: KroneckerPrior,
    features: Tensor,
    labels: Tensor,
    classes: Tensor,
    *,
    samples: int,
    generator: torch.Generator,
) -> SampledAccuracy:
    """Measure the accuracy of the classifier averaged over ``samples`` draws, with its Monte Carlo error.

    An average over few draws is less accurate than the posterior predictive, whose class it often misses: 30 draws of
    heads lost 10 percentage points that 1,000 do not lose. So many are quick because the logits of each image are
    drawn from their own distribution, N(W* z, (z^T U^-1 z) V^+), and not whole heads; in pairs of opposite signs.

    All images share the draws, so their errors are not independent: the error is the standard deviation of the accuracy
    over batches of draws that are drawn again with replacement (Efron 1979, doi:10.1214/aos/1176344552), times
    sqrt(B / (B - 1)). A share of images is no smooth function of the draws, so it is right to within a factor of 2.

    Parameters
    ----------
    features, labels
        Features (N, M), and the true class of each image as its place (N,) in ``classes``.
    classes
        (C,) the classes that compete.
    samples
        At least 2 for each of the `BATCHES`.
    """
    if samples < 2 * BATCHES:
        raise ForetellError(f"samples={samples}: an average with a standard error needs at least {2 * BATCHES} draws.")
    z = with_bias(features)
    mean, root = z @ prior.head.T, _root(prior.class_covariance)
    sd = ((z @ prior.feature_covariance) * z).sum(1, keepdim=True).clamp(min=0).sqrt()
    batches = torch.zeros(BATCHES, len(z), len(classes))
    for k in range(samples // 2):
        noise = sd * (root @ torch.randn(len(root), generator=generator, dtype=torch.float64))
        for logits in (mean + noise, mean - noise):
            batches[k % BATCHES] += logits.softmax(1)[:, classes]
    correct = rank_of_label(batches.sum(0), labels)
    accuracy = [float((correct < rank).double().mean()) for rank in RANKS]
    again = torch.randint(BATCHES, (RESAMPLES, BATCHES), generator=generator)
    ranks = torch.stack([rank_of_label(batches[chosen].sum(0), labels) for chosen in again])
    scale = (BATCHES / (BATCHES - 1)) ** 0.5
    error = [float((ranks < rank).double().mean(1).std()) * scale for rank in RANKS]
    return SampledAccuracy((accuracy[0], accuracy[1]), (error[0], error[1]), correct < 1)


def rank_of_label(scores: Tensor, labels: Tensor) -> Tensor:
    """Count the classes with a higher score (..., N, C) than the true one (N,): (..., N), 0 where it is the highest."""
    own = scores.gather(-1, labels.expand(scores.shape[:-1])[..., None])
    return (scores > own).sum(-1)


def _root(covariance: Tensor) -> Tensor:
    """Return L with L L^T = covariance, which may be singular."""
    values, vectors = torch.linalg.eigh(covariance)
    root: Tensor = vectors * values.clamp(min=0).sqrt()
    return root
