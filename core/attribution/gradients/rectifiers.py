"""Another backward pass for the ReLUs of a network, however they are written and however often they are used.

The network runs as it is: while `Rectifiers` is active, this thread's calls of ReLU functions are replaced by one with
a backward pass of our own, the calls that `torch.nn.ReLU` makes included. Nothing is hooked, copied or traced, so
shared, in-place and functional ReLUs and a forward pass with Python control flow are all met.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

from torch import Tensor
from torch.autograd.function import Function

from core.network.interception import Call, Interception

RectifierRule = Literal["plain", "deconvnet", "guided"]
RectifierForm = tuple[Tensor, float]
"""The rectified tensor, and the ceiling."""

OTHERS = frozenset(
    {"celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid"}
    | {"mish", "prelu", "rrelu", "selu", "sigmoid", "silu", "softplus", "softshrink", "softsign", "tanh", "tanhshrink"}
    | {"threshold"}
)
"""Activations that are no ReLU: they keep their own gradient."""


class _Rectified(Function):
    """min(max(z, 0), ceiling); backwards g by the rule that the mode has then.

    ``"plain"`` passes g where 0 < z < ceiling, ``"deconvnet"`` max(g, 0) everywhere, ``"guided"`` max(g, 0) where
    0 < z < ceiling.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, ceiling: float, mode: Rectifiers, inplace: bool) -> Tensor:
        ctx.mode = mode
        ctx.set_materialize_grads(False)  # what follows may pass no gradient: that is an error, not a heatmap of zeros
        if mode.rule != "deconvnet":
            ctx.save_for_backward((z > 0) & (z < ceiling) if math.isfinite(ceiling) else z > 0)
        if not inplace:
            return z.clamp(0, ceiling)
        # Whoever else holds the tensor must see it changed, as the network's author intended.
        ctx.mark_dirty(z)
        return z.clamp_(0, ceiling)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, None, None, None]:
        rule, gradient = ctx.mode.rule, gradients[0]
        if gradient is None:
            return None, None, None, None
        passed = gradient if rule == "plain" else gradient.relu()
        return passed if rule == "deconvnet" else passed * ctx.saved_tensors[0], None, None, None


_rectify: Callable[[Tensor, float, Rectifiers, bool], Tensor] = _Rectified.apply


def _relu(z: Tensor, **_: Any) -> RectifierForm:
    return z, math.inf


def _relu6(z: Tensor, **_: Any) -> RectifierForm:
    return z, 6.0


def _clamp(z: Tensor, min: Any = None, max: Any = None) -> RectifierForm | None:
    if isinstance(min, Tensor) or isinstance(max, Tensor) or min != 0:
        return None
    return z, math.inf if max is None else float(max)


def _hardtanh(z: Tensor, min_val: float = -1.0, max_val: float = 1.0, **_: Any) -> RectifierForm | None:
    return _clamp(z, min_val, max_val)


def _maximum(z: Tensor, other: Any = None, **_: Any) -> RectifierForm | None:
    """Return the larger of z and 0."""
    if not isinstance(other, Tensor) or bool(other.any()) or other.ndim > z.ndim or other.numel() > z.numel():
        return None
    return z, math.inf


FORMS: Mapping[str, Callable[..., RectifierForm | None]] = {
    "relu": _relu,
    "relu6": _relu6,
    "hardtanh": _hardtanh,
    "clamp": _clamp,
    "clip": _clamp,
    "clamp_min": _clamp,
    "maximum": _maximum,
    "max": _maximum,
    "fmax": _maximum,
}
"""Functions by name that compute min(max(z, 0), ceiling) in PyTorch; `torch.nn.ReLU6` is a hardtanh."""


class Rectifiers(Interception):
    """While active in this thread, every ReLU passes gradients backwards by ``rule``; its output stays what it was.

    A ReLU with a ceiling (ReLU6) counts, and so do ``clamp(min=0)`` and ``torch.maximum(x, zeros)``. Not seen are ReLUs
    inside TorchScript or compiled code, and those written as arithmetic, such as ``x * (x > 0)``.

    Attributes
    ----------
    rule
        Read when gradients are passed, so that one forward pass serves ``"plain"`` and ``"guided"``, whichever it was
        made under; ``"deconvnet"`` keeps nothing for the others.
    met
        How many ReLUs ran.
    others
        Names of the other activations that ran (`OTHERS`).
    """

    def __init__(self, rule: RectifierRule) -> None:
        super().__init__()
        self.rule = rule
        self.met = 0
        self.others: set[str] = set()

    def intercept(self, call: Call) -> Any:
        """Rectify where the call is a ReLU; note other activations."""
        form = FORMS[call.name](*call.args, **call.named) if call.name in FORMS else None
        if form is None or not form[0].is_floating_point():
            self.others |= {call.name} & OTHERS
            return call.run()
        self.met += 1
        return _rectify(*form, self, call.inplace)
