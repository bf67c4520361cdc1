"""Stochastic regularisation at prediction time: noise on what enters or leaves the layers, or on their weights.

Gal 2016 (thesis, "Uncertainty in Deep Learning"), sections 3.2.1 and 3.4: a network trained under such noise is an
approximate Bayesian network, and a forward pass with fresh noise is a draw from its posterior. The network runs as it
is: while `Noise` is active, this thread's calls of layers are answered with noise. No module is changed or put in
training mode, so that batch norms stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from core.errors import ForetellError
from core.uncertainty.draws import Draws

DROPOUTS = frozenset({"dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout"})
CONVOLUTIONS = frozenset({"conv1d", "conv2d", "conv3d"})
LAYERS = CONVOLUTIONS | {"linear"}
ARGUMENTS = (("input", "weight", "bias", "stride", "padding", "dilation", "groups"), ("input", "p"))
"""Names of the positional arguments of layers and of dropouts."""
UNKNOWN = frozenset({"alpha_dropout", "feature_alpha_dropout", "bilinear", "conv_transpose2d"})


@dataclass(frozen=True)
class Call:
    """A network's call of a layer's function, its arguments by name."""

    name: str
    function: Callable[..., Tensor]
    named: dict[str, Any]

    def on(self, **others: Any) -> Tensor:
        """The call's value with other arguments in place of some of its own."""
        return self.function(**self.named | others)


class Kind(Protocol):
    """A kind of noise: which calls it answers, and how."""

    meets: frozenset[str]

    def __call__(self, call: Call, draws: Draws) -> Tensor:
        """The call's value under fresh noise."""


class Noise(TorchFunctionMode):
    """While active in this thread, layers answer under noise of one kind, from the ``first`` call it meets on.

    Attributes
    ----------
    met
        How many calls the kind has met.
    smallest
        The first tensor (of one picture) that became noisy: what has to be kept for each pass begins there.
    """

    def __init__(self, kind: Kind, draws: Draws, first: int = 0) -> None:
        super().__init__()
        self._kind = kind
        self._draws = draws
        self._first = first
        self.met = 0
        self.smallest: Tensor | None = None

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = getattr(func, "__name__", "").rstrip("_")
        if name not in self._kind.meets:
            if name in UNKNOWN:
                raise ForetellError(f"The network calls {name}, under which noise is not known here: use laplace.")
            return func(*args, **(kwargs or {}))
        self.met += 1
        if self.met <= self._first:
            return func(*args, **(kwargs or {}))
        # Positions without a name are a dropout's flags (training, inplace), for which there is no use here.
        named = dict(zip(ARGUMENTS[name in DROPOUTS], args, strict=False)) | (kwargs or {})
        if self.smallest is None:
            self.smallest = named["input"][0]
        return self._kind(Call(name, func, named), self._draws)


class OwnDropout:
    """The dropout that the network has, with its own probabilities or ``rate``; inverted, as it was trained."""

    meets = DROPOUTS

    def __init__(self, rate: float | None) -> None:
        self._rate = rate

    def __call__(self, call: Call, draws: Draws) -> Tensor:
        x, rate = call.named["input"], call.named.get("p", 0.5) if self._rate is None else self._rate
        # Feature dropouts drop whole channels: one draw for each, for all its places.
        shape = x.shape[1:] if call.name == "dropout" else (x.shape[1], *[1] * (x.ndim - 2))
        return _thinned(x, draws.dropped(shape, rate), rate)


class InsertedDropout:
    """Each value that leaves a convolution and each that enters a linear layer dropped on its own (section 3.4.1).

    The noise is on the product with the weights: a bias is not a random variable there.
    """

    meets = LAYERS

    def __init__(self, rate: float) -> None:
        self._rate = rate

    def __call__(self, call: Call, draws: Draws) -> Tensor:
        if call.name == "linear":
            x = call.named["input"]
            return call.on(input=_thinned(x, draws.dropped(x.shape[1:], self._rate), self._rate))
        enlarged = call.on(weight=call.named["weight"] / (1 - self._rate))
        dropped = _laid_out(enlarged, lambda shape: draws.dropped(shape, self._rate))
        return torch.where(dropped, _by_channel(call.named.get("bias"), enlarged), enlarged)


class MultiplicativeNoise:
    """The same values times normal draws of mean 1 and variance ``variance`` (Gaussian dropout)."""

    meets = LAYERS

    def __init__(self, variance: float) -> None:
        self._deviation = math.sqrt(variance)

    def __call__(self, call: Call, draws: Draws) -> Tensor:
        if call.name == "linear":
            return call.on(input=self._noisy(call.named["input"], draws))
        product = self._noisy(call.on(bias=None), draws)
        return product.add_(_by_channel(call.named.get("bias"), product))

    def _noisy(self, x: Tensor, draws: Draws) -> Tensor:
        return x * _laid_out(x, draws.normal).mul_(self._deviation).add_(1)


class DropConnect:
    """Each weight of a layer dropped on its own, and the others enlarged to keep the mean."""

    meets = LAYERS

    def __init__(self, rate: float) -> None:
        self._rate = rate

    def __call__(self, call: Call, draws: Draws) -> Tensor:
        weight = call.named["weight"]
        return call.on(weight=_thinned(weight, draws.dropped(weight.shape, self._rate)[0], self._rate))


class AdditiveNoise:
    """Normal draws of variance ``variance`` added to each weight of a layer."""

    meets = LAYERS

    def __init__(self, variance: float) -> None:
        self._deviation = math.sqrt(variance)

    def __call__(self, call: Call, draws: Draws) -> Tensor:
        weight = call.named["weight"]
        return call.on(weight=weight + self._deviation * draws.normal(weight.shape)[0].to(weight))


def _thinned(x: Tensor, dropped: Tensor, rate: float) -> Tensor:
    # 0 x infinity would be NaN: what is dropped is 0, whatever it was.
    return x.masked_fill(dropped.to(x.device), 0).div_(1 - rate)


def _by_channel(bias: Tensor | None, like: Tensor) -> Tensor:
    """A bias as it is added to a convolution's output; 0 where there is none."""
    return like.new_zeros(()) if bias is None else bias.view(-1, *[1] * (like.ndim - 2))


def _laid_out(x: Tensor, draw: Callable[[Sequence[int]], Tensor]) -> Tensor:
    """Draws (n, ...) for the values of ``x``, in the order in which these lie in memory: another would be slow."""
    if x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last):
        channels, height, width = x.shape[1:]
        return draw((height, width, channels)).permute(0, 3, 1, 2).to(x.device)
    return draw(x.shape[1:]).to(x.device)


def refuse_rate(rate: float) -> None:
    """A probability of dropping below 1, or the sentence that says so."""
    if not 0 <= rate < 1:
        raise ForetellError(f"rate={rate} is not a probability of dropping: choose at least 0 and less than 1.")


def refuse_variance(variance: float) -> None:
    """A variance of at least 0, or the sentence that says so."""
    if not (math.isfinite(variance) and variance >= 0):
        raise ForetellError(f"variance={variance} is not a variance: choose 0 or more.")
