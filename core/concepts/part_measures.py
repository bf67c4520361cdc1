"""How reliable the parts of an explanatory graph are: what its relations explain, and how steady its parts are."""

from __future__ import annotations

import math

from torch import Tensor


def estimate_gain(own: Tensor, other: Tensor, activations: Tensor) -> tuple[float, float]:
    """Estimate how much more likely one graph makes the place of an activation than another, with the standard error.

    In nats, from log P (I, K) of the same activations (I, K, h·w) under both. The error is over images: that of a ratio
    of two means, linearised, which is the HC1 error of a mean weighted by the images' activations.
    """
    weights = activations.sum((1, 2))
    gains = (own - other).sum(1)
    gain = gains.sum() / weights.sum()
    n = len(weights)
    if n < 2:
        return float(gain), math.nan
    error = (gains - gain * weights).norm() * math.sqrt(n / (n - 1)) / weights.sum()
    return float(gain), float(error)


def measure_instability(places: Tensor, landmarks: Tensor) -> tuple[float, float]:
    """Measure the location instability of a part found at places (I, 2), against landmarks (I, L, 2), and its error.

    The standard deviation over images of the distance to a landmark, mean over landmarks, in units of the longer side.
    The source divides distances by the image's diagonal. The error is the jackknife's: images are left out one by one.
    Not a number for fewer than 3 images.
    """
    distances = (places[:, None] - landmarks).norm(dim=-1)
    n = len(distances)
    if n < 3:
        return math.nan, math.nan
    centred = distances - distances.mean(0)
    mean = -centred / (n - 1)
    without = ((centred.square().sum(0) - centred.square()) / (n - 1) - mean.square()).clamp(min=0).sqrt().mean(1)
    error = (without - without.mean()).norm() * math.sqrt((n - 1) / n)
    return float(distances.std(0, correction=0).mean()), float(error)
