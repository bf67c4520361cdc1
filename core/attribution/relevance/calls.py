"""PyTorch's functions by kind, and what their arguments mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from core.network.interception import Call

NAMES = {
    "shape": "flatten reshape view view_as reshape_as permute transpose swapaxes swapdims movedim moveaxis t T mT "
    "clone contiguous chunk split tensor_split unbind cat concat concatenate stack getitem setitem narrow "
    "select index_select gather unsqueeze squeeze expand expand_as broadcast_to broadcast_tensors pad roll "
    "flip unflatten unfold fold tile pixel_shuffle pixel_unshuffle channel_shuffle to type type_as float "
    "double repeat repeat_interleave masked_fill where tril triu positive dropout dropout1d dropout2d "
    "dropout3d alpha_dropout feature_dropout feature_alpha_dropout",
    "pointwise": "relu relu6 hardtanh clamp clip clamp_min clamp_max leaky_relu prelu rrelu elu celu selu gelu silu "
    "mish hardswish hardsigmoid sigmoid logsigmoid tanh tanhshrink softplus softsign softshrink "
    "hardshrink threshold erf exp expm1 log log1p sqrt rsqrt reciprocal abs square pow sin cos atan",
    "total": "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d mean sum "
    "interpolate upsample",
    "maximum": "max_pool1d max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d",
    "convolution": "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d",
    "dense": "linear",
    "add": "add radd iadd",
    "sub": "sub subtract isub",
    "rsub": "rsub",
    "neg": "neg negative",
    "mul": "mul multiply rmul imul",
    "div": "div divide true_divide truediv itruediv idiv",
    "rdiv": "rdiv rtruediv",
    "matmul": "matmul mm bmm rmatmul einsum",
    "softmax": "softmax",
    "batch_norm": "batch_norm",
    "layer_norm": "layer_norm",
    "group_norm": "group_norm",
    "unit_norm": "normalize",
    "attention": "multi_head_attention_forward scaled_dot_product_attention",
    "constant": "detach data zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty "
    "new_tensor",
}
KINDS = {name: kind for kind, names in NAMES.items() for name in names.split()}
"""The kind of each function that `core.attribution.relevance.propagation` handles."""


def find_operands(call: Call) -> tuple[Any, Any]:
    """Return both operands; those of einsum come behind its equation."""
    given = [*call.args, *(call.named[key] for key in ("other", "mat2") if key in call.named)]
    if call.name == "einsum":
        given = list(given[1]) if isinstance(given[1], (list, tuple)) else given[1:]
    if call.name == "rmatmul":
        given.reverse()
    return given[0], given[1]


def multiply(call: Call, a: Tensor, b: Tensor) -> Tensor:
    """Return the bilinear function of a call at other operands."""
    return torch.einsum(call.args[0], a, b) if call.name == "einsum" else torch.matmul(a, b)


def unpack_layer_arguments(call: Call) -> tuple[Tensor, Tensor, Tensor | None, tuple[Any, ...], dict[str, Any]]:
    """Return the input, weight, bias, and the other arguments by position and by name."""
    named = dict(call.named)
    given = list(call.args[:3])
    given += [named.pop(key, None) for key in ("input", "weight", "bias")[len(given) :]]
    return given[0], given[1], given[2], call.args[3:], named


def softmax_dim(input: Tensor, dim: int = -1, *_: Any, **__: Any) -> int:  # noqa: ARG001
    """Return the axis over which a softmax sums to 1."""
    return dim


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,  # noqa: ARG001 - PyTorch's own arguments
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return the input, factor and shift (C,) of a batch norm; None where they come from the batch itself."""
    if training or running_mean is None or running_var is None:
        return None
    scale = (running_var + eps).rsqrt()
    scale = scale if weight is None else scale * weight.detach()
    shift = -running_mean * scale
    return input, scale, shift if bias is None else shift + bias.detach()


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> tuple[Tensor, Sequence[int], Tensor | None, Tensor | None, float]:
    """Return the arguments of a layer norm."""
    return input, normalized_shape, weight, bias, eps


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, int, Tensor | None, Tensor | None, float]:
    """Return the arguments of a group norm."""
    return input, num_groups, weight, bias, eps


def unit_norm(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: None = None
) -> tuple[Tensor, float, int, float, None]:
    """Return the arguments of `torch.nn.functional.normalize`."""
    return input, p, dim, eps, out


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,  # noqa: ARG001 - nothing drops out in eval mode
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Compute `torch.nn.functional.scaled_dot_product_attention` (..., L, E), written out."""
    if is_causal or enable_gqa:
        raise NotImplementedError("causal or grouped attention")
    weights = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if attn_mask is not None:
        closed = attn_mask.dtype == torch.bool
        weights = weights.masked_fill(~attn_mask, -math.inf) if closed else weights + attn_mask
    return F.softmax(weights, dim=-1) @ value


def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,  # noqa: ARG001 - PyTorch's own arguments
    num_heads: int,
    in_proj_weight: Tensor,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,  # noqa: ARG001
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Compute `torch.nn.functional.multi_head_attention_forward` of (L, B, E), without attention weights."""
    masked = any(options.get(name) is not None for name in ("key_padding_mask", "attn_mask"))
    apart = options.get("use_separate_proj_weight") or bias_k is not None or bias_v is not None or add_zero_attn
    if masked or apart or options.get("need_weights", True):
        raise NotImplementedError("masks, further keys, separate weights or attention weights as a result")
    biases: Sequence[Tensor | None] = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    parts = [
        F.linear(x, weight, bias).reshape(*x.shape[:2], num_heads, -1).permute(1, 2, 0, 3)
        for x, weight, bias in zip((query, key, value), in_proj_weight.chunk(3), biases, strict=True)
    ]
    seen = attention(parts[0], parts[1], parts[2]).permute(2, 0, 1, 3).flatten(2)
    return F.linear(seen, out_proj_weight, out_proj_bias), None


ATTENTION: dict[str, Callable[..., Any]] = {
    "scaled_dot_product_attention": attention,
    "multi_head_attention_forward": multi_head_attention,
}
