"""The linear layers of a network as what a relevance rule needs: a function, its weight, its bias, its transpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import grad as gradients

from core.network.cpu import multiply

MapKind = Literal["dense", "convolution", "other"]
"""Kinds of layers in a composite; ``"other"`` adds up without trained weights (pooling, residual sums)."""


@dataclass(frozen=True)
class LinearMap:
    """z = apply(x, weight) + bias, linear in x and in the weight.

    Attributes
    ----------
    apply
        ``apply(x, w) -> z`` without the bias, for any w of the weight's shape. A layer without trained weights has
        the weight 1 by which its sum is multiplied, so that every rule can be written in w.
    transpose
        ``transpose(s, x, w)``, the vector-Jacobian product of `apply` in x at s (shaped like z); x gives its shape.
    weight, bias
        Detached; the bias broadcasts to z.
    kind
        Which rule of a composite it gets.
    foldable
        Whether the outputs are the weight's first axis, so that a batch norm behind can be made part of it.
    """

    apply: Callable[[Tensor, Tensor], Tensor]
    transpose: Callable[[Tensor, Tensor, Tensor], Tensor]
    weight: Tensor
    bias: Tensor | None
    kind: MapKind
    foldable: bool = False

    def fold_affine(self, scale: Tensor, shift: Tensor) -> LinearMap:
        """Follow this layer, if `foldable`, by z * scale + shift, (C,) both."""
        weight = self.weight * scale.view(-1, *[1] * (self.weight.ndim - 1))
        ndim = self.weight.ndim if self.kind == "convolution" else 2
        folded = along_channels(shift, ndim)
        if self.bias is not None:
            folded = folded + self.bias * along_channels(scale, ndim)
        return replace(self, weight=weight, bias=folded)


def along_channels(values: Tensor, ndim: int) -> Tensor:
    """Reshape (C,) so that it broadcasts over (B, C, ...) of ``ndim`` axes."""
    return values.view(1, -1, *[1] * (ndim - 2))


def convolution(
    func: Callable[..., Tensor], weight: Tensor, bias: Tensor | None, *rest: Any, **named: Any
) -> LinearMap:
    """Make the layer of ``func(x, weight, bias, *rest, **named)``, one of PyTorch's convolutions."""
    weight = weight.detach()
    bias = None if bias is None else along_channels(bias.detach(), weight.ndim)

    def apply(x: Tensor, w: Tensor) -> Tensor:
        return func(x, w, None, *rest, **named)

    transpose, name = _derive_transpose(apply), func.__name__
    by_name = isinstance(rest[1] if len(rest) > 1 else named.get("padding", 0), str)
    if name in {"conv1d", "conv2d", "conv3d"} and not by_name:
        of_input = getattr(gradients, f"{name}_input")

        def transpose(s: Tensor, x: Tensor, w: Tensor) -> Tensor:
            return of_input(x.shape, w, s, *rest, **named)  # type: ignore[no-any-return]

    return LinearMap(apply, transpose, weight, bias, "convolution", foldable="transpose" not in name)


def dense(weight: Tensor, bias: Tensor | None) -> LinearMap:
    """Make the layer of ``torch.nn.functional.linear``."""

    def apply(x: Tensor, w: Tensor) -> Tensor:
        return multiply(x, w)

    def transpose(s: Tensor, x: Tensor, w: Tensor) -> Tensor:  # noqa: ARG001
        return multiply(s, w.T)

    return LinearMap(apply, transpose, weight.detach(), None if bias is None else bias.detach(), "dense", foldable=True)


def product(func: Callable[[Tensor, Tensor], Tensor], weight: Tensor) -> LinearMap:
    """Make the layer of a bilinear ``func(x, weight)``: a matrix product with something that is no activation."""
    kind: MapKind = "dense" if weight.ndim <= 2 else "other"
    return LinearMap(func, _derive_transpose(func), weight.detach(), None, kind)


def scaling(scale: Tensor, shift: Tensor | None) -> LinearMap:
    """Make the layer x -> x * scale + shift, each broadcast to x: a batch norm on its own."""

    def apply(x: Tensor, w: Tensor) -> Tensor:
        return x * w

    def transpose(s: Tensor, x: Tensor, w: Tensor) -> Tensor:  # noqa: ARG001
        return s * w

    return LinearMap(apply, transpose, scale.detach(), None if shift is None else shift.detach(), "other")


def summing(func: Callable[[Tensor], Tensor], like: Tensor) -> LinearMap:
    """Make the layer of a sum without trained weights, such as a pooling; ``like`` gives type and device."""

    def apply(x: Tensor, w: Tensor) -> Tensor:
        return func(x) * w

    return LinearMap(
        apply, _derive_transpose(apply), torch.ones((), dtype=like.dtype, device=like.device), None, "other"
    )


def pairing(like: Tensor) -> LinearMap:
    """Make the layer of two tensors in a stack to their sum."""

    def apply(x: Tensor, w: Tensor) -> Tensor:
        return x.sum(0) * w

    def transpose(s: Tensor, x: Tensor, w: Tensor) -> Tensor:
        return (s * w).expand_as(x)

    return LinearMap(apply, transpose, torch.ones((), dtype=like.dtype, device=like.device), None, "other")


def _derive_transpose(apply: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Derive the transpose of any linear function by differentiating it once."""

    def transpose(s: Tensor, x: Tensor, w: Tensor) -> Tensor:
        with torch.enable_grad():
            probe = torch.zeros_like(x).requires_grad_()
            (back,) = torch.autograd.grad(apply(probe, w), probe, s)
        return back

    return transpose
