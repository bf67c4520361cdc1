"""The classifier with uncertain weights in its last layer: predictions averaged over the KFAC posterior.

Folke et al. 2021 (arXiv:2106.09106), appendix A: the check that the prior is that of this network. Its accuracy must be
close to the network's own; it is not where U and V are swapped, as in Ritter et al. 2018 (the paper's footnote 5).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from core.errors import ForetellError
from core.teaching.kfac import KroneckerPrior, with_bias


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
        answers = (z @ head.T).softmax(1)
        total += answers
        square += answers * answers
    mean = total / samples
    variance = (square / samples - mean * mean).clamp(min=0) / (samples - 1)
    return mean, variance.sqrt()


def _root(covariance: Tensor) -> Tensor:
    """Return L with L L^T = covariance, which may be singular."""
    values, vectors = torch.linalg.eigh(covariance)
    root: Tensor = vectors * values.clamp(min=0).sqrt()
    return root
