"""Measures of uncertainty from T predictions of a network for one image; natural logarithms throughout.

Gal 2016, section 3.3.1, with the corrections that entropies of an even prediction are ln 2, not 0.5. ``probabilities``
is (B, T, K): T softmax outputs for each of B images.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.special import entr


@dataclass(frozen=True)
class Estimate:
    """A measure for each image: ``value`` (B,) and its Monte Carlo standard ``error`` (B,), both float64."""

    value: Tensor
    error: Tensor


def predictive_mean(probabilities: Tensor) -> Tensor:
    """Compute the predictive mean over the passes, (B, K) float64 (Gal 2016, equation 3.16)."""
    return probabilities.double().mean(1)


def least_confidence(probabilities: Tensor) -> Estimate:
    """Compute one minus the largest probability of the predictive mean: 0 is certain, 1 - 1/K is a uniform guess."""
    predictions = probabilities.double()
    return _jackknife(predictions.mean(1), _leave_out_each(predictions), lambda mean: 1 - mean.amax(-1))


def entropy(probabilities: Tensor) -> Estimate:
    """Compute the entropy of the predictive mean: the total uncertainty, from the image and the weights."""
    predictions = probabilities.double()
    return _jackknife(predictions.mean(1), _leave_out_each(predictions), lambda mean: entr(mean).sum(-1))


def mutual_information(probabilities: Tensor) -> Estimate:
    """Compute the entropy of the mean minus the mean entropy: the uncertainty due to the weights (BALD).

    At least 0 and at most the entropy.
    """
    predictions = probabilities.double()
    # The mean entropy is carried as one more column, so that leaving a pass out leaves both out.
    both = torch.cat([predictions, entr(predictions).sum(-1, keepdim=True)], -1)
    return _jackknife(
        both.mean(1), _leave_out_each(both), lambda mean: (entr(mean[..., :-1]).sum(-1) - mean[..., -1]).clamp(min=0)
    )


def variation_ratio(probabilities: Tensor, *, generator: torch.Generator | None = None) -> Estimate:
    """Compute the share of T labels, one drawn from each pass, that differ from the most common one.

    Labels are drawn from the predictions, not their largest: a network that says (.5, .5) every time varies. Pass t
    draws with the same random number for every image. For many passes this goes to `least_confidence`.
    """
    predictions = probabilities.double()
    passes, classes = predictions.shape[1:]
    chances = torch.rand(passes, 1, generator=generator or torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = (predictions.cumsum(-1) < chances).sum(-1).clamp(max=classes - 1)
    counts = torch.nn.functional.one_hot(labels, classes).sum(1)
    ratio = 1 - counts.amax(1).double() / passes
    return Estimate(ratio, (ratio * (1 - ratio) / passes).sqrt())


def log_likelihood(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Compute the predictive log-likelihood (B,) of ``labels`` (B,): log of the mean probability (Gal 2016, 3.3.3)."""
    chosen = predictive_mean(probabilities).gather(1, labels.view(-1, 1))[:, 0]
    return chosen.log()


def regression_log_likelihood(outputs: Tensor, truth: Tensor, precision: float) -> Tensor:
    """Compute the predictive log-likelihood (B,) of ``truth`` (B, D) under T outputs (B, T, D) with ``precision``.

    Gal 2016, equation 3.18, whose constants hold for D = 1: here both are times D.
    """
    passes, size = outputs.shape[1:]
    squared = (truth.double()[:, None] - outputs.double()).square().sum(-1)
    constants = -math.log(passes) - size / 2 * math.log(2 * math.pi) + size / 2 * math.log(precision)
    return (-precision / 2 * squared).logsumexp(1) + constants


def model_precision(rate: float, length_scale: float, images: int, weight_decay: float) -> float:
    """Compute the precision tau = (1 - p) l^2 / (2 N lambda) of a network trained by dropout (Gal 2016, eq. 3.14).

    ``weight_decay`` is lambda of lambda |W|^2 next to half the squared error, averaged over N images; an optimiser's
    ``weight_decay`` adds w times it to the gradient and is therefore 2 lambda. ``rate`` is p of dropping, masks not
    inverted; for PyTorch's inverted dropout 1 - p is in the denominator.
    """
    return (1 - rate) * length_scale**2 / (2 * images * weight_decay)


def _leave_out_each(values: Tensor) -> Tensor:
    """Return means over the passes without each, (B, T, ...)."""
    passes = values.shape[1]
    return (values.sum(1, keepdim=True) - values) / (passes - 1)


def _jackknife(mean: Tensor, left_out: Tensor, measure: Callable[[Tensor], Tensor]) -> Estimate:
    passes = left_out.shape[1]
    without = measure(left_out.clamp(min=0))
    spread = (without - without.mean(1, keepdim=True)).square().sum(1)
    return Estimate(measure(mean), (spread * (passes - 1) / passes).sqrt())
