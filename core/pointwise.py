"""1 x 1 convolutions for gradients: on one thread, torch takes half as long again for fewer than 16 inputs.

Its rule for these sizes leaves oneDNN aside, forwards and backwards (``ConvParams::use_mkldnn``); here they are given
to it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.modules.utils import _pair
from torch.overrides import TorchFunctionMode

AS_THEY_ARE = ((0, 0), (1, 1), (1, 1), 1)
"""Padding, stride, dilation and groups of a convolution that looks at each place alone."""


class Pointwise(TorchFunctionMode):
    """While active in this thread, 1 x 1 convolutions and the gradients of their inputs are oneDNN's.

    Weights get no gradient.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        found = _form(*args, **(kwargs or {})) if func is torch.conv2d else None
        if found is None:
            return func(*args, **(kwargs or {}))
        return _Convolution.apply(*found)  # type: ignore[no-untyped-call]


def onednn_takes(x: Tensor) -> bool:
    """Whether ``torch.mkldnn_convolution`` computes convolutions of ``x``: of (B, C, H, W) float32 on a CPU."""
    there: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return there and x.ndim == 4 and x.device.type == "cpu" and x.dtype == torch.float32


def _form(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,  # noqa: ARG001
    groups: int = 1,
) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """Input, weight and bias of a convolution that looks at each place alone."""
    alone = tuple(weight.shape[2:]) == _pair(stride) == (1, 1) and padding in (0, (0, 0), "valid") and groups == 1
    return (input, weight, bias) if alone and onednn_takes(input) and weight.dtype == torch.float32 else None


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(weight)
        return torch.mkldnn_convolution(x, weight, bias, *AS_THEY_ARE)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (weight,) = ctx.saved_tensors
        return torch.mkldnn_convolution(gradient, weight.transpose(0, 1), None, *AS_THEY_ARE), None, None
