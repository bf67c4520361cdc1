"""Stochastic forward passes of a network: logits (B, T, K) of T draws.

All take ``last``, which keeps the noise to that many of the layers nearest to the output (0: all).
"""

from __future__ import annotations

from core.uncertainty import noise
from core.uncertainty.passes import sampler
from core.uncertainty.strength import refuse_rate, refuse_variance


@sampler
def mc_dropout(*, rate: float = 0.0) -> noise.NoiseKind:
    """Keep the network's own dropout on, which makes it an approximate Bayesian network (MC dropout).

    Gal 2016, proposition 2. Batch norms stay in evaluation mode.

    Parameters
    ----------
    rate
        Probability of dropping a unit; 0 for each layer's own.

    Raises
    ------
    ForetellError
        A network without dropout, or with none but of rate 0.
    """
    if rate != 0:
        refuse_rate(rate)
    return noise.OwnDropout(rate or None)


@sampler
def inserted_dropout(*, rate: float = 0.1) -> noise.NoiseKind:
    """Insert dropout into a network trained without it: per element, after convolutions and before pooling.

    Gal 2016, section 3.4.1; before linear layers it drops inputs. What is kept is enlarged by the rate as rounded, so
    that its mean is exact. The network was not trained for it, so its predictions may be far off: see the accuracy.

    Parameters
    ----------
    rate
        Probability of dropping an element, rounded to a 65,536th.
    """
    refuse_rate(rate)
    return noise.InsertedDropout(rate)


@sampler
def multiplicative_noise(*, variance: float = 0.1) -> noise.NoiseKind:
    """Multiply inputs of linear layers and outputs of convolutions by normal noise of mean 1 (Gaussian dropout).

    Gal 2016, section 3.2.1.

    Parameters
    ----------
    variance
        Variance of the noise; p / (1 - p) is as strong as dropout with probability p.
    """
    refuse_variance(variance)
    return noise.MultiplicativeNoise(variance)


@sampler
def drop_connect(*, rate: float = 0.1) -> noise.NoiseKind:
    """Drop weights one by one and enlarge the others to keep the mean.

    Gal 2016, section 3.2.2; Wan et al. 2013. All images of one pass share its draw of the weights.

    Parameters
    ----------
    rate
        Probability of dropping a weight.
    """
    refuse_rate(rate)
    return noise.DropConnect(rate)


@sampler
def additive_noise(*, variance: float = 1e-4) -> noise.NoiseKind:
    """Add normal noise to every weight: a normal posterior with a single variance.

    Gal 2016, section 3.2.2. All images of one pass share its draw of the weights.

    Parameters
    ----------
    variance
        Variance of the noise on each weight.
    """
    refuse_variance(variance)
    return noise.AdditiveNoise(variance)
