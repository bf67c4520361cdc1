"""Self-attention of `torch.nn.MultiheadAttention` as two linear layers around PyTorch's fused attention."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn


class SelfAttention(nn.MultiheadAttention):
    """The same layer, with the same weights and outputs, in parts that can be traced and made faster.

    PyTorch's own is one function from the input to the output, in which no linear layer is seen. A call that is more
    than attention of tokens to each other, such as one with a mask or for the weights, still goes there.
    """

    projection: nn.Linear

    def forward(self, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **named: Any) -> tuple[Tensor, Any]:
        """Attend from each token of ``query`` (B, N, E) to all; return (B, N, E), and no weights."""
        given = {name: setting for name, setting in named.items() if setting is not None}
        if rest or key is not query or value is not query or given != {"need_weights": False}:
            result: tuple[Tensor, Any] = super().forward(query, key, value, *rest, **named)
            return result
        parts = self.projection(query).unflatten(-1, (3, self.num_heads, self.head_dim)).permute(2, 0, 3, 1, 4).unbind()
        attended = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        return self.out_proj(attended.transpose(1, 2).flatten(2)), None


def split_attention(network: nn.Module) -> nn.Module:
    """Make every `MultiheadAttention` of the network that can be a `SelfAttention`, in place; return the network."""
    for layer in list(network.modules()):
        if type(layer) is not nn.MultiheadAttention or not _is_plain(layer):
            continue
        projection = nn.Linear(1, 1, bias=False)
        projection.weight, projection.bias = layer.in_proj_weight, layer.in_proj_bias
        projection.in_features, projection.out_features = layer.embed_dim, 3 * layer.embed_dim
        layer.__class__ = SelfAttention
        layer.projection = projection
        layer.out_proj.__class__ = nn.Linear  # type: ignore[assignment] # PyTorch's subclass of it only keeps quantisation away
    return network


def _is_plain(layer: nn.MultiheadAttention) -> bool:
    extended = layer.bias_k is not None or layer.bias_v is not None or layer.add_zero_attn
    return layer.batch_first and layer.in_proj_weight is not None and not extended
