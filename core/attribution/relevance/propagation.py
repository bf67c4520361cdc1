"""A forward pass with another backward pass: every call to PyTorch is intercepted and classified by kind.

The network runs as it is, whoever wrote it: nothing is hooked, copied or traced, so that shared, in-place and
functional activations, residual sums written as ``+=`` and Python control flow are all met. What `Propagation` does
not know it refuses: a rule that skips a layer would be silently wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from core.attribution.relevance import calls
from core.attribution.relevance.linear_maps import (
    LinearMap,
    along_channels,
    convolution,
    dense,
    pairing,
    product,
    scaling,
    summing,
)
from core.errors import ForetellError
from core.network.interception import Call, Interception, read

Bounds = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Mark:
    """Facts about a tensor that comes from the network's input.

    Attributes
    ----------
    bounds
        Lowest and highest values it can have, while it is still the input, only rescaled or reshaped; else None.
    source
        The input and the map of the linear layer whose output it is; else None.
    """

    bounds: Bounds | None = None
    source: tuple[Tensor, LinearMap] | None = None


def mark_of(tensor: Any) -> Mark | None:
    """Return the mark of an activation; None for weights and constants."""
    return getattr(tensor, "_foretell_mark", None)


def mark_tensor(tensor: Tensor, mark: Mark) -> Tensor:
    """Return the tensor, known as an activation."""
    tensor._foretell_mark = mark  # type: ignore[attr-defined]
    return tensor


def _end(i: int) -> Callable[[Tensor], Tensor]:
    """Return an activation's lower (0) or upper (1) bound in its place."""

    def end(tensor: Tensor) -> Tensor:
        mark = mark_of(tensor)
        return tensor if mark is None or mark.bounds is None else mark.bounds[i]

    return end


class Propagation(Interception):
    """While active in this thread, the calls of a network go to the methods below, one for each kind.

    Parameters
    ----------
    who, method
        The classifier and the method, for the sentence that refuses a call.

    Attributes
    ----------
    remedy
        What that sentence says to do instead.
    """

    remedy = "Use a method for any network, such as integrated_gradients, smoothgrad or bayesian_teaching."

    def __init__(self, who: str, method: str) -> None:
        super().__init__()
        self.who = who
        self.method = method
        self._written: dict[int, tuple[Tensor, Tensor]] = {}

    def linear(self, x: Tensor, layer: LinearMap, value: Callable[[], Tensor]) -> Tensor:
        """Handle a linear layer; ``value()`` is the network's own output."""
        raise NotImplementedError

    def pointwise(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Handle a function of each value alone, such as an activation."""
        raise NotImplementedError

    def scale(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Handle a product with a constant, which may broadcast, or the input's sum with one."""
        return self.pointwise(x, function)

    def bilinear(self, function: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor) -> Tensor:
        """Handle a product of two activations, element by element or of matrices."""
        raise NotImplementedError

    def divide(self, a: Tensor, b: Tensor) -> Tensor:
        """Handle a quotient of two activations."""
        raise NotImplementedError

    def maximum(self, function: Callable[..., Any], x: Tensor) -> Tensor:
        """Max-pool; ``function(x, return_indices=True)`` gives the values and their flat places in each channel."""
        raise NotImplementedError

    def softmax(self, x: Tensor, dim: int) -> Tensor:
        """Handle a softmax within the network."""
        raise NotImplementedError

    def normalise(self, x: Tensor, dims: Sequence[int], eps: float) -> Tensor:
        """Normalise (x - mean) / sqrt(variance + eps) over ``dims``, as a layer norm does before its weights."""
        raise NotImplementedError

    def unit_norm(self, x: Tensor, dim: int, eps: float) -> Tensor:
        """Divide by the Euclidean norm over ``dim``, or by ``eps`` where that is larger."""
        raise NotImplementedError

    def output(self, module: torch.nn.Module, inputs: Tensor, bounds: Bounds | None = None) -> Tensor:
        """Compute logits (B, K) for inputs (B, C, H, W); the methods of this class are their backward pass."""
        self._written.clear()
        with self:
            logits = module(mark_tensor(inputs.clone(), Mark(bounds=bounds)))
        logits = self.current(logits) if isinstance(logits, Tensor) else logits
        if mark_of(logits) is None:
            raise self._make_unsupported_error("gives logits that PyTorch does not trace to the input")
        self._written.clear()
        return logits

    def intercept(self, call: Call) -> Any:
        """Send a call that has an activation among its arguments to the method of its kind."""
        first: Any = call.args[0] if call.args else None
        call = read(call.func, *tree_map_only(Tensor, self.current, call.written))
        if not any(mark_of(leaf) for leaf in tree_leaves((call.args, call.named))):
            return call.run()
        result = self.dispatch_call(call)
        if not call.inplace:
            return result
        if result is not call.args[0]:
            # Nothing is overwritten, since the backward pass needs it: from here on, the old tensor means the new one.
            self._written[id(first)] = (first, result)
        return first

    def current(self, tensor: Tensor) -> Tensor:
        """Return a tensor's value after the in-place calls on it."""
        while id(tensor) in self._written:
            tensor = self._written[id(tensor)][1]
        return tensor

    def dispatch_call(self, call: Call) -> Any:
        """Return what the network gets for a call that has an activation among its arguments."""
        kind = calls.KINDS.get(call.name)
        if kind is not None:
            return getattr(self, f"_{kind}")(call)
        result = call()
        floating = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor) and leaf.is_floating_point()]
        if floating:
            raise self._make_unsupported_error(f"computes {call.name}()")
        return result  # sizes, types, comparisons: nothing that carries relevance

    def _make_unsupported_error(self, what: str) -> ForetellError:
        return ForetellError(f"{self.who} {what}, for which {self.method} has no rule. {self.remedy}")

    def _constant(self, call: Call) -> Any:
        result: Any = call()
        return tree_map_only(Tensor, Tensor.detach, result)

    def _shape(self, call: Call) -> Any:
        """Leave the backward pass to PyTorch: values only move, or are left out."""
        moved = call()
        known = [mark.bounds for leaf in tree_leaves(call.args) if (mark := mark_of(leaf)) is not None]
        if None in known or not isinstance(moved, Tensor):
            return tree_map_only(Tensor, lambda leaf: mark_tensor(leaf, Mark()), moved)
        low, high = (replace(call, args=tree_map_only(Tensor, _end(i), call.args))() for i in range(2))
        return mark_tensor(moved, Mark(bounds=(low, high)))

    def _pointwise(self, call: Call) -> Tensor:
        """Handle a function with one activation among its arguments, anywhere."""
        self._only_first(call)
        return mark_tensor(self.pointwise(call.args[0], call.on), Mark())

    def _only_first(self, call: Call) -> None:
        if mark_of(call.args[0]) is None or any(mark_of(leaf) for leaf in tree_leaves((call.args[1:], call.named))):
            raise self._make_unsupported_error(f"computes {call.name}() with other activations as its arguments")

    def _rescale(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Scale by a constant, or add one to what is still the input."""
        mark = mark_of(x)
        ends = None if mark is None or mark.bounds is None else [function(bound) for bound in mark.bounds]
        # A negative factor turns the ends around.
        bounds = None if ends is None else (torch.minimum(*ends), torch.maximum(*ends))
        return mark_tensor(self.scale(x, function), Mark(bounds=bounds))

    def _mul(self, call: Call) -> Tensor:
        a, b = calls.find_operands(call)
        if mark_of(a) is not None and mark_of(b) is not None:
            return mark_tensor(self.bilinear(torch.mul, a, b), Mark())
        x, factor = (a, b) if mark_of(a) is not None else (b, a)
        return self._rescale(x, lambda value: value * factor)

    def _div(self, call: Call) -> Tensor:
        a, b = calls.find_operands(call)
        if mark_of(b) is None:
            return self._rescale(a, lambda value: value / b)
        if mark_of(a) is None:
            return mark_tensor(self.pointwise(b, lambda value: a / value), Mark())
        return mark_tensor(self.divide(a, b), Mark())

    def _add(self, call: Call) -> Tensor:
        a, b = calls.find_operands(call)
        alpha = call.named.get("alpha", 1)
        return self._sum(a, b if alpha == 1 else self._rescale(b, lambda value: value * alpha))

    def _sub(self, call: Call) -> Tensor:
        a, b = calls.find_operands(call)
        return self._sum(a, self._negative(b))

    def _rsub(self, call: Call) -> Tensor:
        a, b = calls.find_operands(call)
        return self._sum(self._negative(a), b)

    def _rdiv(self, call: Call) -> Tensor:
        x, dividend = calls.find_operands(call)
        return mark_tensor(self.pointwise(x, lambda value: dividend / value), Mark())

    def _neg(self, call: Call) -> Tensor:
        return self._rescale(call.args[0], torch.neg)

    def _negative(self, x: Any) -> Any:
        return -x if mark_of(x) is None else self._rescale(x, torch.neg)

    def _sum(self, a: Any, b: Any) -> Tensor:
        if mark_of(a) is not None and mark_of(b) is not None:
            pair = torch.stack(torch.broadcast_tensors(a, b))  # type: ignore[no-untyped-call]
            return mark_tensor(self.linear(pair, pairing(a), lambda: a + b), Mark())
        x, shift = (a, b) if mark_of(a) is not None else (b, a)
        mark = mark_of(x)
        if mark is not None and mark.bounds is not None:
            return self._rescale(x, lambda value: value + shift)
        shift = torch.as_tensor(shift, dtype=x.dtype, device=x.device)
        whole = x.expand(torch.broadcast_shapes(x.shape, shift.shape))  # type: ignore[no-untyped-call]
        return mark_tensor(self.linear(whole, scaling(torch.ones_like(shift), shift), lambda: x + shift), Mark())

    def _matmul(self, call: Call) -> Tensor:
        pair = partial(calls.multiply, call)
        a, b = calls.find_operands(call)
        if mark_of(a) is not None and mark_of(b) is not None:
            return mark_tensor(self.bilinear(pair, a, b), Mark())
        if mark_of(a) is not None:
            return self._layer(a, product(pair, b), call)
        return self._layer(b, product(lambda x, w: pair(w, x), a), call)

    def _layer(self, x: Tensor, layer: LinearMap, call: Call) -> Tensor:
        return mark_tensor(self.linear(x, layer, call), Mark(source=(x, layer)))

    def _convolution(self, call: Call) -> Tensor:
        self._only_first(call)
        x, weight, bias, rest, named = calls.unpack_layer_arguments(call)
        return self._layer(x, convolution(call.func, weight, bias, *rest, **named), call)

    def _dense(self, call: Call) -> Tensor:
        self._only_first(call)
        x, weight, bias, _, _ = calls.unpack_layer_arguments(call)
        return self._layer(x, dense(weight, bias), call)

    def _total(self, call: Call) -> Tensor:
        """Sum or average places: pooling, mean, enlarging."""
        self._only_first(call)
        return mark_tensor(self.linear(call.args[0], summing(call.on, call.args[0]), call), Mark())

    def _maximum(self, call: Call) -> Tensor:
        self._only_first(call)
        if call.named.pop("return_indices", False):
            raise self._make_unsupported_error(f"uses the places of {call.name}()")
        return mark_tensor(self.maximum(call.on, call.args[0]), Mark())

    def _softmax(self, call: Call) -> Tensor:
        return self.softmax(call.args[0], calls.softmax_dim(*call.args, **call.named))

    def _batch_norm(self, call: Call) -> Tensor:
        norm = calls.batch_norm(*call.args, **call.named)
        if norm is None:
            raise self._make_unsupported_error(f"computes {call.name}() with the batch's own statistics")
        x, scale, shift = norm
        mark = mark_of(x)
        if mark is not None and mark.bounds is not None:
            factor, term = along_channels(scale, x.ndim), along_channels(shift, x.ndim)
            return self._rescale(x, lambda value: value * factor + term)
        if mark is not None and mark.source is not None and mark.source[1].foldable:
            before, layer = mark.source
            return self._layer(before, layer.fold_affine(scale, shift), call)
        layer = scaling(along_channels(scale, x.ndim), along_channels(shift, x.ndim))
        return mark_tensor(self.linear(x, layer, call), Mark())

    def _layer_norm(self, call: Call) -> Tensor:
        x, shape, weight, bias, eps = calls.layer_norm(*call.args, **call.named)
        normalised = mark_tensor(self.normalise(x, range(x.ndim - len(shape), x.ndim), eps), Mark())
        return self._affine(normalised, weight, bias)

    def _group_norm(self, call: Call) -> Tensor:
        x, groups, weight, bias, eps = calls.group_norm(*call.args, **call.named)
        normalised = self.normalise(x.reshape(len(x), groups, -1), [2], eps).reshape(x.shape)
        columns = [None if values is None else along_channels(values, x.ndim) for values in (weight, bias)]
        return self._affine(mark_tensor(normalised, Mark()), *columns)

    def _unit_norm(self, call: Call) -> Tensor:
        x, power, dim, eps, out = calls.unit_norm(*call.args, **call.named)
        if power != 2 or out is not None:
            raise self._make_unsupported_error(f"computes {call.name}() with p={power} or a given output")
        return mark_tensor(self.unit_norm(x, dim, eps), Mark())

    def _affine(self, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
        if weight is None:
            return x
        layer = scaling(weight, bias)
        return mark_tensor(self.linear(x, layer, lambda: x * weight + (0 if bias is None else bias)), Mark())

    def _attention(self, call: Call) -> Any:
        try:
            rewritten = calls.ATTENTION[call.name]
            with self:
                return rewritten(*call.args, **call.named)
        except NotImplementedError as error:
            raise self._make_unsupported_error(f"computes {call.name}() with {error}") from None
