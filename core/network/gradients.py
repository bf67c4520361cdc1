"""Gradients of a network's outputs, right also where PyTorch computes wrong ones.

PyTorch 2.13 misreads a gradient or an input of a batch norm on a CPU: for one image, a view such as
``flatten(2).transpose(1, 2)`` leaves channels-last values whose strides do not say so, and the backward pass of
`torch.nn.BatchNorm2d`, and of `torch.nn.InstanceNorm2d`, takes the one order for the other. The error is as large as
the gradient, in float64 too, and no two images have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

BATCH_NORM = "NativeBatchNormBackward0"
"""Name of the node of autograd's graph by which batch and instance norms pass gradients back."""


def differentiate(
    outputs: Tensor,
    inputs: Tensor | Sequence[Tensor],
    weights: Tensor | None = None,
    *,
    retain_graph: bool | None = None,
    allow_unused: bool = False,
) -> tuple[Tensor, ...]:
    """Compute the gradient of ``outputs``, weighted and summed, for each of ``inputs``: `torch.autograd.grad`, guarded.

    Every gradient of a user's network is computed here; a test holds that.
    """
    if outputs.device.type == "cpu":
        _guard_batch_norms(outputs)
    return torch.autograd.grad(outputs, inputs, weights, retain_graph=retain_graph, allow_unused=allow_unused)


def _guard_batch_norms(outputs: Tensor) -> None:
    """Let every batch norm behind ``outputs`` that has one image lay its gradient out as its strides say."""
    seen: set[Any] = set()
    waiting = [outputs.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        waiting += [following for following, _ in node.next_functions]
        if node.name() == BATCH_NORM and len(node._saved_input) == 1:  # type: ignore[attr-defined]
            node.register_prehook(_lay_out(node._saved_input))  # type: ignore[attr-defined]


def _lay_out(x: Tensor) -> Callable[[tuple[Tensor | None, ...]], tuple[Tensor | None, ...]]:
    """Make the hook that copies the gradient of a batch norm of ``x`` where PyTorch would mix up their orders."""
    plain, hidden = x.is_contiguous(), _hides_its_order(x)

    def hook(gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        first, *others = gradients
        mixed = first is not None and ((plain and _hides_its_order(first)) or (hidden and first.is_contiguous()))
        if first is None or not mixed:
            return gradients
        return torch.empty_like(first, memory_format=torch.channels_last).copy_(first), *others

    return hook


def _hides_its_order(values: Tensor) -> bool:
    """Tell whether values (1, C, H, W) are channels-last by strides of which the first one denies it."""
    if values.ndim != 4 or values.is_contiguous() or not values.is_contiguous(memory_format=torch.channels_last):
        return False
    return values.stride(0) < values[0].numel()
