"""Transformer attribution: attention weighted by the class's gradient, accumulated through the layers.

Chefer, Gur & Wolf 2021 (arXiv:2103.15679); its predecessor is arXiv:2012.09838.
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.attribution.cost import gradients
from core.attribution.maps.attention import Attentions, explain_by_attention, mean_of_positive_products
from core.attribution.method import Query, heatmap_method
from core.attribution.records import Family
from core.attribution.signs import SUPPORT
from core.types import Explanation


@heatmap_method(family=Family.ATTENTION, sign=SUPPORT, cost=gradients())
def transformer_attribution(query: Query) -> Explanation:
    """Accumulate attention that raises the logit of the class, layer by layer, to what the network reads.

    Chefer et al. 2021 (arXiv:2103.15679), eq. 5 and 6: per layer the mean over heads of the positive part of attention
    x d logit / d attention, A, and R <- R + A R from the identity, which is taken off at the end. The rows of the class
    and distillation tokens that the network reads, or without them the mean over all places. Needs a network that
    attends from all tokens to all tokens, as ViT, DeiT, DINOv2 and CLIP do.
    """
    maps, logits = explain_by_attention(query, _accumulate)
    return query.explain(maps, logits=logits)


def _accumulate(read: Attentions) -> Tensor:
    layers = mean_of_positive_products(read)
    identity = torch.eye(layers[0].shape[-1], dtype=layers[0].dtype)
    relevance = identity.expand_as(layers[0])
    for layer in layers:
        relevance = relevance + layer @ relevance
    return relevance - identity
