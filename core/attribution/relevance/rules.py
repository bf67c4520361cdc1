"""The rules of layer-wise relevance propagation: how a linear layer distributes the relevance of its outputs.

Input i sends the contribution c_ij = x_i w_ij to output j, whose sum (with the bias, if biases take their share) is
z_j; where a sum is 0, so are its shares. Montavon et al. 2019 (doi:10.1007/978-3-030-28954-6_10), table 1, unless
another source is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from core.attribution.relevance.linear_maps import LinearMap

Bounds = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Flow:
    """Relevance on its way back through one layer.

    Attributes
    ----------
    layer, x, z
        The layer, its input and its output.
    relevance
        Of the output, shaped like z.
    bounds
        Lowest and highest values of x, where it is the image; else None.
    """

    layer: LinearMap
    x: Tensor
    z: Tensor
    relevance: Tensor
    bounds: Bounds | None = None


class Rule(Protocol):
    """A rule by which one linear layer distributes relevance."""

    def __call__(self, flow: Flow) -> Tensor:
        """Return the relevance of x, shaped like it."""


@dataclass(frozen=True)
class Epsilon:
    """In proportion to c_ij / (z_j + epsilon sign z_j), Bach et al. 2015 (doi:10.1371/journal.pone.0130140), eq. 58.

    ``epsilon = 0`` is LRP-0, eq. 56.
    """

    epsilon: float

    def __call__(self, flow: Flow) -> Tensor:
        total = stabilise(flow.z, self.epsilon)
        quotient = flow.relevance / total if self.epsilon else per(flow.relevance, total)
        return flow.x * flow.layer.transpose(quotient, flow.x, flow.layer.weight)


@dataclass(frozen=True)
class Gamma:
    """In proportion to c_ij + gamma c_ij^+ where z_j > 0, and c_ij + gamma c_ij^- where z_j < 0.

    For inputs that are not negative and z_j > 0 this is w + gamma w^+, the rule of the table; written in contributions
    it keeps its meaning for all others.
    """

    gamma: float

    def __call__(self, flow: Flow) -> Tensor:
        layer, x, z = flow.layer, flow.x, flow.z
        rising, falling = compute_signed_sums(layer, x)
        same_sign = torch.where(z > 0, rising, falling)
        quotient = per(flow.relevance, z + self.gamma * same_sign)
        boosted = self.gamma * quotient
        zero = torch.zeros((), dtype=z.dtype, device=z.device)
        up, down = torch.where(z > 0, boosted, zero), torch.where(z > 0, zero, boosted)
        return x * layer.transpose(quotient, x, layer.weight) + compute_signed_shares(layer, x, up, down)


@dataclass(frozen=True)
class AlphaBeta:
    """alpha c_ij^+ / z_j^+ - beta c_ij^- / z_j^-, with alpha - beta = 1: the convention of today.

    Bach et al. 2015, eq. 60, write a plus sign and alpha + beta = 1: their beta is the negative of this one. An output
    without negative contributions passes on alpha times its relevance instead of alpha - beta = 1 times, one without
    positive ones -beta times.
    """

    alpha: float
    beta: float

    def __call__(self, flow: Flow) -> Tensor:
        rising, falling = compute_signed_sums(flow.layer, flow.x)
        down = -self.beta * per(flow.relevance, falling) if self.beta else None
        return compute_signed_shares(flow.layer, flow.x, self.alpha * per(flow.relevance, rising), down)


class SquaredWeights:
    """In proportion to w_ij^2: for inputs of any value, Montavon et al. 2017 (arXiv:1512.02479), eq. 12."""

    def __call__(self, flow: Flow) -> Tensor:
        return _blind(flow, flow.layer.weight.square())


class Flat:
    """The same to every input: for an image as a whole, Lapuschkin et al. 2019 (arXiv:1902.10178)."""

    def __call__(self, flow: Flow) -> Tensor:
        return _blind(flow, torch.ones_like(flow.layer.weight))


class ZBox:
    """z^B: in proportion to x w - l w^+ - h w^- for inputs between l and h, Montavon et al. 2017, eq. 14."""

    def __call__(self, flow: Flow) -> Tensor:
        if flow.bounds is None:
            raise ValueError("the box rule needs the bounds of its input")
        (low, high), layer, x = flow.bounds, flow.layer, flow.x
        terms = ((x, layer.weight), (-low, layer.weight.clamp(min=0)), (-high, layer.weight.clamp(max=0)))
        quotient = per(flow.relevance, torch.stack([layer.apply(value, w) for value, w in terms]).sum(0))
        shares = [value * layer.transpose(quotient, x, w) for value, w in terms]
        return torch.stack(shares).sum(0)


def per(relevance: Tensor, total: Tensor) -> Tensor:
    """Divide relevance by its total, 0 where the total is."""
    return (relevance / total).masked_fill_(total == 0, 0)


def stabilise(z: Tensor, epsilon: float) -> Tensor:
    """Add epsilon sign z to z, where 0 counts as positive."""
    return z + torch.copysign(torch.full((), epsilon, dtype=z.dtype, device=z.device), z) if epsilon else z


def compute_signed_sums(layer: LinearMap, x: Tensor) -> tuple[Tensor, Tensor]:
    """Compute z^+ and z^-: the sums of the positive and of the negative contributions, the bias by its own sign."""
    up, down = layer.weight.clamp(min=0), layer.weight.clamp(max=0)
    rising, falling = (layer.apply(x.clamp(min=0), w) for w in (up, down))
    if bool((x < 0).any()):
        below = x.clamp(max=0)
        rising, falling = rising + layer.apply(below, down), falling + layer.apply(below, up)
    if layer.bias is not None:
        rising, falling = rising + layer.bias.clamp(min=0), falling + layer.bias.clamp(max=0)
    return rising, falling


def compute_signed_shares(layer: LinearMap, x: Tensor, rising: Tensor, falling: Tensor | None) -> Tensor:
    """Sum c^+ times ``rising`` plus c^- times ``falling`` over the outputs; None means 0."""
    up, down = layer.weight.clamp(min=0), layer.weight.clamp(max=0)

    def back(above: Tensor, below: Tensor) -> Tensor:
        total = layer.transpose(rising, x, above)
        return total if falling is None else total + layer.transpose(falling, x, below)

    shares = x.clamp(min=0) * back(up, down)
    if bool((x < 0).any()):
        shares = shares + x.clamp(max=0) * back(down, up)
    return shares


def _blind(flow: Flow, weight: Tensor) -> Tensor:
    """Return shares in proportion to a weight that is not negative, whatever the input."""
    total = flow.layer.apply(torch.ones_like(flow.x), weight)
    return flow.layer.transpose(per(flow.relevance, total), flow.x, weight)
