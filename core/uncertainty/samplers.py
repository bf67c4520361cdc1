"""Stochastic forward passes of a network: logits (B, T, K) of T draws."""

from __future__ import annotations

import torch
from torch import Tensor

from core.classifier import Classifier
from core.types import Progress, silent
from core.uncertainty import noise
from core.uncertainty.passes import with_noisy_values, with_noisy_weights
from core.uncertainty.strength import refuse_rate, refuse_variance


def mc_dropout(
    classifier: Classifier,
    images: Tensor,
    *,
    passes: int = 100,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    rate: float = 0.0,
) -> Tensor:
    """Keep the network's own dropout on, which makes it an approximate Bayesian network (MC dropout).

    Gal 2016, proposition 2. ``rate=0`` is each layer's own; batch norms stay in evaluation mode.

    Raises
    ------
    ForetellError
        A network without dropout, or with none but of rate 0.
    """
    if rate != 0:
        refuse_rate(rate)
    return with_noisy_values(classifier, images, noise.OwnDropout(rate or None), passes, generator, progress)


def inserted_dropout(
    classifier: Classifier,
    images: Tensor,
    *,
    passes: int = 100,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    rate: float = 0.1,
    last: int = 0,
) -> Tensor:
    """Insert dropout into a network trained without it: per element, after convolutions and before pooling.

    Gal 2016, section 3.4.1; before linear layers it drops inputs. ``last`` keeps to that many of the layers nearest to
    the output (0: all). ``rate`` is rounded to a 65,536th, and what is kept is enlarged by the rate as rounded, so that
    its mean is exact. The network was not trained for it, so its predictions may be far off: see the accuracy.
    """
    refuse_rate(rate)
    kind = noise.InsertedDropout(rate)
    return with_noisy_values(classifier, images, kind, passes, generator, progress, last=last)


def multiplicative_noise(
    classifier: Classifier,
    images: Tensor,
    *,
    passes: int = 100,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    variance: float = 0.1,
    last: int = 0,
) -> Tensor:
    """Multiply inputs of linear layers and outputs of convolutions by normal noise of mean 1 (Gaussian dropout).

    Gal 2016, section 3.2.1. ``variance`` = p / (1 - p) is as strong as dropout with probability p.
    """
    refuse_variance(variance)
    kind = noise.MultiplicativeNoise(variance)
    return with_noisy_values(classifier, images, kind, passes, generator, progress, last=last)


def drop_connect(
    classifier: Classifier,
    images: Tensor,
    *,
    passes: int = 100,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    rate: float = 0.1,
    last: int = 0,
) -> Tensor:
    """Drop weights one by one and enlarge the others to keep the mean.

    Gal 2016, section 3.2.2; Wan et al. 2013. All images of one pass share its draw of the weights.
    """
    refuse_rate(rate)
    return with_noisy_weights(classifier, images, noise.DropConnect(rate), passes, generator, progress, last=last)


def additive_noise(
    classifier: Classifier,
    images: Tensor,
    *,
    passes: int = 100,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    variance: float = 1e-4,
    last: int = 0,
) -> Tensor:
    """Add normal noise to every weight: a normal posterior with a single variance.

    Gal 2016, section 3.2.2. All images of one pass share its draw of the weights.
    """
    refuse_variance(variance)
    return with_noisy_weights(classifier, images, noise.AdditiveNoise(variance), passes, generator, progress, last=last)
