"""DeepLIFT's multipliers for any network: how a difference from a reference contributes to the logit's difference.

Shrikumar, Greenside & Kundaje 2017 (arXiv:1704.02685). The reference goes through the network first and is remembered,
call by call; then the input, whose way back carries multipliers m with sum m * (x - reference) = difference of the
logit at every layer. Linear layers have their weights as multipliers. Where the paper is silent the rule is the one
that keeps that sum: a product of two activations gives each its difference times the mean of the other, layer norms
being made of sums, products and functions of one value; a softmax has its mean Jacobian on the straight line from the
reference's logits; the places of a maximum take what it gains over the reference, those of the reference's maximum what
it loses.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import Function
from torch.utils._pytree import tree_leaves

from core.attribution.relevance.calls import KINDS
from core.attribution.relevance.linear_maps import LinearMap
from core.attribution.relevance.propagation import Mark, Propagation, mark_of, mark_tensor
from core.attribution.relevance.rules import per
from core.errors import ForetellError
from core.network.gradients import differentiate
from core.network.interception import Call

DeepLiftRule = Annotated[
    Literal["rescale", "reveal_cancel", "mixed"],
    "Rule for activation functions: Rescale, RevealCancel, or mixed: Rescale behind convolutions and RevealCancel "
    "behind linear layers.",
]
"""For functions of one value: section 3.5.2, section 3.5.3, or Rescale behind convolutions and RevealCancel behind
dense layers, the paper's advice for networks of both (section 4)."""

POINTS, STRETCH = 16, 8.0
"""Points of a Gauss-Legendre rule, and the largest change of a softmax's logits that one rule integrates over."""


class _Rescaled(Function):
    """f(x); backwards, the multiplier (f(x) - f(r)) / (x - r), section 3.5.2."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, reference: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        y = function(x.detach())
        ctx.save_for_backward(x, reference, y)
        ctx.function = function
        return y

    @staticmethod
    def backward(ctx: Any, *multipliers: Tensor) -> tuple[Tensor, None, None]:
        x, reference, y = ctx.saved_tensors
        function, delta, both = ctx.function, x - reference, x + reference
        slope = (y - function(reference)).div_(delta)
        # Below this a quotient is mostly rounding error; the derivative halfway is nearer to it. Numbers so near have
        # one sign, so that their sum says how large they are.
        near = delta.abs_() <= both.abs().mul_(torch.finfo(x.dtype).eps ** 0.5)
        if bool(near.any()):
            slope = torch.where(near, _derivative(function, both.div_(2)), slope)
        return slope.mul_(multipliers[0]).sum_to_size(x.shape), None, None


class _RevealedCancel(Function):
    """f(z) of a linear layer's output; backwards, straight to the layer's input x, section 3.5.3.

    z rises by its positive contributions and falls by its negative ones; each gets what it changes on average before
    and after the other, and a multiplier of its own (the linear rule, section 3.5.1).
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        z: Tensor,
        references: tuple[Tensor, Tensor],
        layer: LinearMap,
        function: Callable[[Tensor], Tensor],
    ) -> Tensor:
        ctx.save_for_backward(x, z, *references)
        ctx.how = layer, function
        return function(z)

    @staticmethod
    def backward(ctx: Any, *multipliers: Tensor) -> tuple[Tensor | None, ...]:
        (layer, f), m = ctx.how, multipliers[0]
        x, z, x0, z0 = ctx.saved_tensors
        up, down = layer.weight.clamp(min=0), layer.weight.clamp(max=0)
        delta = x - x0
        above, below = delta.clamp(min=0), delta.clamp(max=0)
        rise = layer.apply(above, up) + layer.apply(below, down)
        fall = layer.apply(above, down) + layer.apply(below, up)
        # z0 + rise + fall is z but for rounding, which z itself does not add.
        gained = ((f(z0 + rise) - f(z0)) + (f(z) - f(z0 + fall))) / 2
        lost = ((f(z0 + fall) - f(z0)) + (f(z) - f(z0 + rise))) / 2
        to_rise, to_fall = m * per(gained, rise), m * per(lost, fall)
        where_up = layer.transpose(to_rise, x, up) + layer.transpose(to_fall, x, down)
        where_down = layer.transpose(to_rise, x, down) + layer.transpose(to_fall, x, up)
        where_same = layer.transpose((to_rise + to_fall) / 2, x, layer.weight)
        back = torch.where(delta > 0, where_up, torch.where(delta < 0, where_down, where_same))
        return back, None, None, None, None


class _Product(Function):
    """A bilinear f(a, b); backwards, the multipliers at the means of both: f(a, b) - f(a0, b0) is exactly
    f(a - a0, mean b) + f(mean a, b - b0)."""

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, b: Tensor, references: tuple[Tensor, Tensor], function: Callable[[Tensor, Tensor], Tensor]
    ) -> Tensor:
        ctx.save_for_backward((a + references[0]) / 2, (b + references[1]) / 2)
        ctx.function = function
        return function(a, b)

    @staticmethod
    def backward(ctx: Any, *multipliers: Tensor) -> tuple[Tensor, Tensor, None, None]:
        with torch.enable_grad():
            means = tuple(mean.detach().requires_grad_() for mean in ctx.saved_tensors)
            to_a, to_b = torch.autograd.grad(ctx.function(*means), means, multipliers[0])
        return to_a, to_b, None, None


class _Maximum(Function):
    """A max-pooling; backwards, each output's difference to where it is largest or to where the reference was."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, places: Tensor, references: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        ctx.save_for_backward(x, y, places, *references)
        return y.detach()

    @staticmethod
    def backward(ctx: Any, *multipliers: Tensor) -> tuple[Tensor, None, None, None]:
        x, y, places, x0, y0, places0 = ctx.saved_tensors
        larger = torch.maximum(y, y0)
        # What the output gains stems from where it is largest now, what it loses from where the reference was: there
        # the input differs by at least as much, so that no quotient is above 1.
        given = _scatter_values(multipliers[0] * (larger - y0), places, x)
        given = given + _scatter_values(multipliers[0] * (y - larger), places0, x)
        return per(given, x - x0), None, None, None


class _Softmax(Function):
    """A softmax; backwards, its Jacobian averaged along the straight line from the reference's logits to the input's.

    Of a function of many values this mean is what Rescale is of one: the multipliers sum to the difference (Aumann &
    Shapley 1974; Sundararajan et al. 2017, arXiv:1703.01365). Rescale for exp and for 1 / sum would do so too, but as
    a small difference of numbers that grow like exp of the logits' difference.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, reference: Tensor, dim: int) -> Tensor:
        ctx.save_for_backward(x, reference)
        ctx.dim = dim
        return x.softmax(dim)

    @staticmethod
    def backward(ctx: Any, *multipliers: Tensor) -> tuple[Tensor, None, None]:
        (x, x0), dim, m = ctx.saved_tensors, ctx.dim, multipliers[0]
        delta = torch.where(x == x0, 0, x - x0)  # both are -inf where attention is masked
        total = torch.zeros_like(x)
        for position, weight in _quadrature(float((delta.amax(dim) - delta.amin(dim)).max())):
            share = (x0 + position * delta).softmax(dim)
            total += weight * share * (m - (m * share).sum(dim, keepdim=True))
        return total, None, None


def _quadrature(spread: float) -> Iterator[tuple[float, float]]:
    """Yield positions in (0, 1) and weights that integrate a softmax whose logits' differences change by ``spread``.

    Along the line it is analytic up to a distance of pi / spread from the real axis: Gauss-Legendre rules on parts in
    which the differences change by at most `STRETCH` are exact to about 1e-7.
    """
    parts = max(1, math.ceil(spread / STRETCH)) if math.isfinite(spread) else 1
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    for part in range(parts):
        for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True):
            yield (part + (node + 1) / 2) / parts, weight / 2 / parts


_apply_rescale: Callable[..., Tensor] = _Rescaled.apply
_revealed_cancel: Callable[..., Tensor] = _RevealedCancel.apply
_product: Callable[..., Tensor] = _Product.apply
_maximum: Callable[..., Tensor] = _Maximum.apply
_softmax: Callable[..., Tensor] = _Softmax.apply


class Differences(Propagation):
    """Two forward passes, of the reference and of the input, whose way back carries multipliers.

    Raises
    ------
    ForetellError
        A call without a rule, or a network that takes another way for the input than for the reference.
    """

    def __init__(self, who: str, method: str, rule: DeepLiftRule) -> None:
        super().__init__(who, method)
        self.rule = rule
        self._remembering = True
        self._memory: list[tuple[Tensor, ...]] = []
        self._way: list[tuple[str, list[Tensor]]] = []

    def logits(self, module: nn.Module, inputs: Tensor, references: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits (B, K) of inputs (B, C, H, W), differentiable by multipliers, and those of the references."""
        if len(references) > 1 and bool((references == references[:1]).all()):
            # One pass for all, unless the network mixes the images of a batch: then each needs its own.
            with contextlib.suppress(ForetellError):
                logits, start = self._both(module, inputs, references[:1])
                return logits, start.expand_as(logits)
        return self._both(module, inputs, references)

    def _both(self, module: nn.Module, inputs: Tensor, references: Tensor) -> tuple[Tensor, Tensor]:
        self._remembering, self._memory, self._way = True, [], []
        with torch.no_grad():
            start = self.output(module, references)
        self._remembering = False
        self._memory.reverse()
        self._way.reverse()
        with torch.enable_grad():
            return self.output(module, inputs), start

    def dispatch_call(self, call: Call) -> Any:
        if call.name in KINDS:
            leaves = (leaf for leaf in tree_leaves((call.args, call.named)) if isinstance(leaf, Tensor))
            step = call.name, [leaf for leaf in leaves if not leaf.is_floating_point()]  # masks and places
            if self._remembering:
                self._way.append(step)
            elif not self._way or not _same_step(self._way.pop(), step):
                raise self._other_way()
        return super().dispatch_call(call)

    def _other_way(self) -> ForetellError:
        return ForetellError(
            f"{self.who} runs different code for the image and for its reference: {self.method} cannot compare them. "
            "Use another baseline, or a method that needs none, such as smoothgrad or bayesian_teaching."
        )

    def _references(self, *values: Tensor) -> tuple[Tensor, ...]:
        """Remember values on the reference's pass; recall them on the input's."""
        if self._remembering:
            self._memory.append(tuple(value.detach() for value in values))
            return ()
        recalled = self._memory.pop() if self._memory else ()
        if len(recalled) != len(values) or not all(map(_fits, recalled, values)):
            raise self._other_way()
        return tuple(a.expand_as(b) for a, b in zip(recalled, values, strict=True))

    def linear(self, x: Tensor, layer: LinearMap, value: Callable[[], Tensor]) -> Tensor:  # noqa: ARG002
        return value()

    def pointwise(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        mark = mark_of(x)
        source = None if mark is None else mark.source
        cancels = self.rule == "reveal_cancel" or (self.rule == "mixed" and source and source[1].kind == "dense")
        if source is None or not cancels:
            references = self._references(x)
            return _apply_rescale(x, *references, function) if references else function(x)
        before, layer = source
        references = self._references(before, x)
        return _revealed_cancel(before, x.detach(), references, layer, function) if references else function(x)

    def scale(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        return function(x)  # linear: the factor is the multiplier

    def bilinear(self, function: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor) -> Tensor:
        references = self._references(a, b)
        return _product(a, b, references, function) if references else function(a, b)

    def divide(self, a: Tensor, b: Tensor) -> Tensor:
        return self.bilinear(torch.mul, a, self.pointwise(b, torch.reciprocal))

    def maximum(self, function: Callable[..., Any], x: Tensor) -> Tensor:
        y, places = function(x.detach(), return_indices=True)
        references = self._references(x, y, places)
        return _maximum(x, y, places, references) if references else y

    def softmax(self, x: Tensor, dim: int) -> Tensor:
        references = self._references(x)
        return mark_tensor(_softmax(x, *references, dim) if references else x.softmax(dim), Mark())

    def normalise(self, x: Tensor, dims: Sequence[int], eps: float) -> Tensor:
        over = tuple(dims)
        deviation = x - x.mean(over, keepdim=True)
        variance = self.pointwise(deviation, torch.square).mean(over, keepdim=True)
        return self.bilinear(torch.mul, deviation, self.pointwise(variance, lambda value: (value + eps).rsqrt()))

    def unit_norm(self, x: Tensor, dim: int, eps: float) -> Tensor:
        total = self.pointwise(x, torch.square).sum(dim, keepdim=True)
        return self.bilinear(torch.mul, x, self.pointwise(total, lambda value: value.clamp_min(eps**2).rsqrt()))


def _fits(reference: Tensor, value: Tensor) -> bool:
    """Tell whether shapes are equal, or one reference serves a whole batch."""
    return reference.shape in (value.shape, (1, *value.shape[1:]))


def _same_step(one: tuple[str, list[Tensor]], other: tuple[str, list[Tensor]]) -> bool:
    same = one[0] == other[0] and len(one[1]) == len(other[1])
    return same and all(torch.equal(a, b) for a, b in zip(one[1], other[1], strict=True))


def contributions(
    module: nn.Module,
    inputs: Tensor,
    references: Tensor,
    propagation: Differences,
    chosen: Callable[[Tensor], Tensor],
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute contributions (B, C, H, W) to the difference of ``chosen(logits)`` (B,), and both ends' logits (B, K)."""
    leaf = inputs.detach().requires_grad_()
    logits, start = propagation.logits(module, leaf, references)
    with torch.enable_grad():
        (multipliers,) = differentiate(chosen(logits).sum(), leaf)
    return multipliers * (inputs - references), logits.detach(), start


def _derivative(function: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    with torch.enable_grad():
        at = at.detach().requires_grad_()
        (slope,) = torch.autograd.grad(function(at).sum(), at)
    return slope


def _scatter_values(values: Tensor, places: Tensor, like: Tensor) -> Tensor:
    """Sum ``values`` at their flat ``places`` in each channel of ``like`` (B, C, ...)."""
    flat = torch.zeros_like(like).flatten(2)
    return flat.scatter_add(2, places.flatten(2), values.flatten(2)).view_as(like)
