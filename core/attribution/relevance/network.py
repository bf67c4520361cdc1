"""Layer-wise relevance propagation for any network: a logit is distributed, layer by layer, down to the pixels.

Bach et al. 2015 (doi:10.1371/journal.pone.0130140). Linear layers share by a rule of
`core.attribution.relevance.rules`, a batch norm behind one being part of it; activations and products with constants
pass relevance on, max-pooling to the largest. A product of two activations gives each half, what each adds to it on
average when both grow from 0. The spread that a layer norm divides by counts as a constant, as does the Euclidean norm
that CLIP divides its embedding by, and so do attention weights (Ali et al. 2022, arXiv:2202.07304), unless a composite
takes AttnLRP's rule for their softmax (Achtibat et al. 2024, arXiv:2402.05602).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import Function
from torch.nn import functional as F

from core.attribution.relevance.linear_maps import LinearMap, summing
from core.attribution.relevance.propagation import Bounds, Mark, Propagation, mark_of, mark_tensor
from core.attribution.relevance.rules import Epsilon, Flow, Rule, per, stabilise
from core.network.gradients import differentiate

STABILISER = 1e-6
"""Added to the sums of residual connections and poolings, which have no trained weights."""


@dataclass(frozen=True)
class Composite:
    """A rule for each kind of layer.

    Attributes
    ----------
    dense, convolution
        For layers with trained weights.
    first
        For the layers that the image itself enters; None is the rule of their kind.
    other
        For sums without trained weights and for batch norms on their own.
    bias_absorbs
        Whether biases take a share of the relevance, which then is lost: without it the sum is kept.
    through_softmax
        Whether attention weights pass relevance on to what they are computed from: AttnLRP, proposition 3.1.
    """

    dense: Rule
    convolution: Rule
    first: Rule | None = None
    other: Rule = field(default=Epsilon(STABILISER))
    bias_absorbs: bool = True
    through_softmax: bool = False


class _Shared(Function):
    """A linear layer's output; backwards, relevance by its rule."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, z: Tensor, layer: LinearMap, rule: Rule, absorbs: bool, bounds: Bounds | None
    ) -> Tensor:
        ctx.save_for_backward(x, z)
        ctx.how = layer, rule, absorbs, bounds
        return z.detach()

    @staticmethod
    def backward(ctx: Any, *relevance: Tensor) -> tuple[Tensor | None, ...]:
        layer, rule, absorbs, bounds = ctx.how
        x, z = ctx.saved_tensors
        if layer.bias is not None and not absorbs:
            z, layer = z - layer.bias, replace(layer, bias=None)
        return rule(Flow(layer, x, z, relevance[0], bounds)), None, None, None, None, None


class _Passed(Function):
    """A function of each value alone; backwards, relevance as it is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.shape = x.shape
        return function(x.detach())

    @staticmethod
    def backward(ctx: Any, *relevance: Tensor) -> tuple[Tensor, None]:
        return relevance[0].sum_to_size(ctx.shape), None


class _Halved(Function):
    """A product of two activations; backwards, half of the relevance to each."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, function: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        z = function(a, b)
        ctx.save_for_backward(a, b, z)
        ctx.function = function
        return z

    @staticmethod
    def backward(ctx: Any, *relevance: Tensor) -> tuple[Tensor, Tensor, None]:
        a, b, z = ctx.saved_tensors
        quotient = per(relevance[0], stabilise(z, STABILISER)) / 2
        with torch.enable_grad():
            factors = a.detach().requires_grad_(), b.detach().requires_grad_()
            to_a, to_b = torch.autograd.grad(ctx.function(*factors), factors, quotient)
        return a * to_a, b * to_b, None


class _Softmax(Function):
    """A softmax; backwards, R_j = x_j (R_j - s_j sum_k R_k), its Taylor expansion at x (AttnLRP, proposition 3.1)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        s = x.softmax(dim)
        ctx.save_for_backward(x, s)
        ctx.dim = dim
        return s

    @staticmethod
    def backward(ctx: Any, *relevance: Tensor) -> tuple[Tensor, None]:
        x, s = ctx.saved_tensors
        shares = relevance[0] - s * relevance[0].sum(ctx.dim, keepdim=True)
        return x.masked_fill(x.isinf(), 0) * shares, None  # what a mask closes has no share


_share_relevance: Callable[..., Tensor] = _Shared.apply
_pass_relevance: Callable[..., Tensor] = _Passed.apply
_halve_relevance: Callable[..., Tensor] = _Halved.apply
_pass_through_softmax: Callable[..., Tensor] = _Softmax.apply


class Relevance(Propagation):
    """A forward pass whose backward pass carries relevance instead of gradients.

    Raises
    ------
    ForetellError
        From the forward pass: a call without a rule, or a first layer with the box rule whose inputs are unknown.
    """

    def __init__(self, who: str, method: str, composite: Composite) -> None:
        super().__init__(who, method)
        self.composite = composite

    def linear(self, x: Tensor, layer: LinearMap, value: Callable[[], Tensor]) -> Tensor:
        mark = mark_of(x)
        bounds = None if mark is None else mark.bounds
        with torch.no_grad():
            z = value()
        return _share_relevance(
            x, z, layer, self._rule(layer, first=bounds is not None), self.composite.bias_absorbs, bounds
        )

    def _rule(self, layer: LinearMap, *, first: bool) -> Rule:
        if layer.kind == "other":
            return self.composite.other
        if first and self.composite.first is not None:
            return self.composite.first
        return self.composite.dense if layer.kind == "dense" else self.composite.convolution

    def pointwise(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        return _pass_relevance(x, function)

    def bilinear(self, function: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor) -> Tensor:
        return _halve_relevance(a, b, function)

    def divide(self, a: Tensor, b: Tensor) -> Tensor:
        return _pass_relevance(a, lambda value: value / b.detach())

    def maximum(self, function: Callable[..., Any], x: Tensor) -> Tensor:
        largest: Tensor = function(x)
        return largest

    def softmax(self, x: Tensor, dim: int) -> Tensor:
        if self.composite.through_softmax:
            return mark_tensor(_pass_through_softmax(x, dim), Mark())
        return x.detach().softmax(dim)

    def normalise(self, x: Tensor, dims: Sequence[int], eps: float) -> Tensor:
        if not isinstance(self.composite.other, Epsilon):
            raise self._make_unsupported_error("normalises its activations (layer norm)")
        over = tuple(dims)
        spread = (x.detach().var(over, keepdim=True, correction=0) + eps).sqrt()
        layer = summing(lambda value: (value - value.mean(over, keepdim=True)) / spread, x)
        return self.linear(x, layer, lambda: layer.apply(x, layer.weight))

    def unit_norm(self, x: Tensor, dim: int, eps: float) -> Tensor:
        return _pass_relevance(x, lambda value: F.normalize(value, dim=dim, eps=eps))


def relevance_of_inputs(
    module: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    propagation: Relevance,
    bounds: Bounds,
) -> tuple[Tensor, Tensor]:
    """Compute the inputs' relevance (B, C, H, W), the target's logit being its own relevance, and logits (B, K)."""
    inputs = inputs.detach().requires_grad_()
    with torch.enable_grad():
        logits = propagation.output(module, inputs, bounds)
        chosen = logits.gather(1, targets[:, None])[:, 0]
        (relevance,) = differentiate(chosen, inputs, chosen.detach())
    return relevance, logits.detach()
