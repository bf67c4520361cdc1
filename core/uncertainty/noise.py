"""Stochastic regularisation at prediction time: noise on what enters or leaves the layers, or on their weights.

Gal 2016 (thesis, "Uncertainty in Deep Learning"), sections 3.2.1 and 3.4: a network trained under such noise is an
approximate Bayesian network, and a forward pass with fresh noise is a draw from its posterior. The network runs as it
is: while `Noise` is active, this thread's calls of layers are replaced by noisy ones. No module is changed or put in
training mode, so that batch norms stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from core.errors import ForetellError
from core.network.cpu import CONVOLUTION, convolve
from core.network.interception import Call, Interception
from core.uncertainty.draws import Draws, enlargement

DROPOUTS = frozenset({"dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout"})
CONVOLUTIONS = frozenset({"conv1d", "conv2d", "conv3d"})
LAYERS = CONVOLUTIONS | {"linear"}
UNKNOWN = frozenset({"alpha_dropout", "feature_alpha_dropout", "bilinear", "conv_transpose2d"})


@dataclass(frozen=True)
class LayerCall:
    """A network's call of a layer's function, its arguments by name."""

    name: str
    function: Callable[..., Tensor]
    named: dict[str, Any]

    def on(self, **others: Any) -> Tensor:
        """Return the call's value with other arguments in place of some of its own."""
        named = self.named | others
        faster = convolve(named) if self.name == "conv2d" else None
        return self.function(**named) if faster is None else faster


class NoiseKind(Protocol):
    """A kind of noise: which calls it replaces, and how; whether it is on the layers' weights or on values."""

    meets: frozenset[str]
    on_weights: bool

    def is_silent(self, call: LayerCall, /) -> bool:
        """Tell whether a call that it meets stays as it is."""

    def __call__(self, call: LayerCall, draws: Draws) -> Tensor:
        """Return the call's value under fresh noise."""


class Noise(Interception):
    """While active in this thread, layers run under noise of one kind, from the ``first`` call it meets on.

    Attributes
    ----------
    met
        How many calls the kind has met and does not leave as they are.
    smallest
        The first tensor (of one image) that became noisy: what has to be kept for each pass begins there.
    """

    def __init__(self, kind: NoiseKind, draws: Draws, first: int = 0) -> None:
        super().__init__()
        self._kind = kind
        self._draws = draws
        self._first = first
        self.met = 0
        self.smallest: Tensor | None = None

    def intercept(self, call: Call) -> Any:
        """Return the call's value under noise where the kind meets it."""
        if call.name not in self._kind.meets:
            if call.name in UNKNOWN:
                raise ForetellError(f"The network calls {call.name}, for which no noise is implemented: use laplace.")
            return call.run()
        # Positions without a name are a dropout's flags (training, inplace), for which there is no use here.
        names = ("input", "p") if call.name in DROPOUTS else CONVOLUTION
        layer = LayerCall(call.name, call.func, call.name_arguments(names))
        silent = self._kind.is_silent(layer)
        self.met += not silent
        if silent or self.met <= self._first:
            return call.run()
        if self.smallest is None:
            self.smallest = layer.named["input"][0]
        return self._kind(layer, self._draws)


class OwnDropout:
    """The dropout that the network has, with its own probabilities or ``rate``; inverted, as it was trained."""

    meets = DROPOUTS
    on_weights = False

    def __init__(self, rate: float | None) -> None:
        self._rate = rate

    def is_silent(self, call: LayerCall, /) -> bool:
        return self._of(call) == 0

    def _of(self, call: LayerCall) -> float:
        return float(call.named.get("p", 0.5)) if self._rate is None else self._rate

    def __call__(self, call: LayerCall, draws: Draws) -> Tensor:
        x, rate = call.named["input"], self._of(call)
        # Feature dropouts drop whole channels: one draw for each, for all its places.
        return _drop_values(x, draws, rate, None if call.name == "dropout" else (x.shape[1], *[1] * (x.ndim - 2)))


class _OnLayers:
    meets = LAYERS
    on_weights = False

    def is_silent(self, _: LayerCall, /) -> bool:
        return False


class _OnValues(_OnLayers):
    """Noise on what leaves a convolution, without its bias, and on what enters a linear layer."""

    def __call__(self, call: LayerCall, draws: Draws) -> Tensor:
        if call.name == "linear":
            return call.on(input=self._noisy(call.named["input"], draws))
        product = call.on(bias=None)
        return self._noisy(product, draws, plus=_by_channel(call.named.get("bias"), product), over=True)

    def _noisy(self, x: Tensor, draws: Draws, *, plus: Tensor | None = None, over: bool = False) -> Tensor:
        """Return the noisy values as `_times` has them."""
        raise NotImplementedError


class InsertedDropout(_OnValues):
    """Each value that leaves a convolution and each that enters a linear layer dropped on its own (section 3.4.1).

    The noise is on the product with the weights: a bias is not a random variable there.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate

    def _noisy(self, x: Tensor, draws: Draws, *, plus: Tensor | None = None, over: bool = False) -> Tensor:
        return _drop_values(x, draws, self._rate, plus=plus, over=over)


class MultiplicativeNoise(_OnValues):
    """The same values times normal draws of mean 1 and variance ``variance`` (Gaussian dropout)."""

    def __init__(self, variance: float) -> None:
        self._deviation = math.sqrt(variance)

    def _noisy(self, x: Tensor, draws: Draws, *, plus: Tensor | None = None, over: bool = False) -> Tensor:
        drawn = draws.draw_normal((_parts(x, draws), *_in_memory(x)), 1.0, self._deviation)
        return _times(x, draws, (_match_layout(factors, x) for factors in drawn), plus=plus, over=over)


class _OnWeights(_OnLayers):
    """Each pass has weights of its own, so that a layer is called once for each; one row of input serves all."""

    on_weights = True

    def __call__(self, call: LayerCall, draws: Draws) -> Tensor:
        x, weight = call.named["input"], call.named["weight"]
        rows = x.expand(len(draws) * _parts(x, draws) if len(x) == 1 else -1, *[-1] * (x.ndim - 1))
        passes = zip(rows.chunk(len(draws)), draws.each(), strict=True)
        outputs = [call.on(input=some, weight=self._noisy(weight, alone)) for some, alone in passes]
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)

    def _noisy(self, weight: Tensor, draws: Draws) -> Tensor:
        """Return the weights of the one pass of ``draws``."""
        raise NotImplementedError


class DropConnect(_OnWeights):
    """Each weight of a layer dropped on its own, and the others enlarged to keep the mean."""

    def __init__(self, rate: float) -> None:
        self._rate = rate

    def _noisy(self, weight: Tensor, draws: Draws) -> Tensor:
        return _drop_values(weight[None], draws, self._rate)[0]


class AdditiveNoise(_OnWeights):
    """Normal draws of variance ``variance`` added to each weight of a layer."""

    def __init__(self, variance: float) -> None:
        self._deviation = math.sqrt(variance)

    def _noisy(self, weight: Tensor, draws: Draws) -> Tensor:
        # In place, as new memory costs as much as the draw.
        return next(draws.draw_normal(weight.shape, 0.0, self._deviation)).to(weight).add_(weight)


def _drop_values(
    x: Tensor,
    draws: Draws,
    rate: float,
    shape: Sequence[int] | None = None,
    *,
    plus: Tensor | None = None,
    over: bool = False,
) -> Tensor:
    """Return what each pass keeps of ``x``, enlarged, as `_times` has it.

    ``shape`` is that of the draws for a part where not every value has its own.
    """
    drawn = draws.draw_kept((_parts(x, draws), *(_in_memory(x) if shape is None else shape)), rate)
    factors = (_match_layout(kept, x) if shape is None else kept.to(x) for kept in drawn)
    return _times(x, draws, factors, plus=plus, over=over, scale=enlargement(rate))


def _times(
    x: Tensor, draws: Draws, factors: Iterator[Tensor], *, plus: Tensor | None, over: bool, scale: float = 1.0
) -> Tensor:
    """Return ``x`` (n parts, ...), or the one (1, ...) of all, times the factors of each of n passes, ``plus`` a bias.

    ``over``: ``x`` is the caller's, to be written over where it has room. One pass at a time: its factors stay in the
    cache.
    """
    parts, plus = _parts(x, draws), x.new_zeros(()) if plus is None else plus
    noisy = x if over and len(x) == len(draws) * parts else _room(x, len(draws) * parts)
    rows = (x.expand_as(noisy).chunk(len(draws)), noisy.chunk(len(draws)), factors)
    for some, out, by in zip(*rows, strict=True):
        torch.addcmul(plus, some, by, value=scale, out=out)
    return noisy


def _room(x: Tensor, rows: int) -> Tensor:
    """Return ``rows`` rows like those of ``x``, laid out as they are."""
    layout = torch.channels_last if _channels_last(x) else torch.contiguous_format
    return torch.empty((rows, *x.shape[1:]), dtype=x.dtype, device=x.device, memory_format=layout)


def _parts(x: Tensor, draws: Draws) -> int:
    """Count the rows of ``x`` of a pass: more than one where a network cuts an image into windows."""
    if len(x) > 1 and len(x) % len(draws):
        raise ForetellError(
            f"The network gives a layer {len(x)} rows for {len(draws)} images, so that no pass has its own: use "
            "laplace."
        )
    return max(1, len(x) // len(draws))


def _by_channel(bias: Tensor | None, like: Tensor) -> Tensor:
    """Return a bias as it is added to a convolution's output; 0 where there is none."""
    return like.new_zeros(()) if bias is None else bias.view(-1, *[1] * (like.ndim - 2))


def _channels_last(x: Tensor) -> bool:
    return x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last)


def _in_memory(x: Tensor) -> Sequence[int]:
    """Return the values of a row of ``x`` in the order in which they lie in memory: draws in another would be slow."""
    return (*x.shape[2:], x.shape[1]) if _channels_last(x) else x.shape[1:]


def _match_layout(drawn: Tensor, x: Tensor) -> Tensor:
    """Return draws (parts, *`_in_memory`) as factors of ``x``."""
    return drawn.to(x).movedim(-1, 1) if _channels_last(x) else drawn.to(x)
