"""Attention rollout: attention multiplied through the layers, from the class token down to the patches.

Abnar & Zuidema 2020 (arXiv:2005.00928).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from core.attribution.cost import gradients
from core.attribution.maps.attention import Attentions, explain_by_attention, mean_of_heads
from core.attribution.method import Query, heatmap_method
from core.attribution.records import Family
from core.attribution.signs import ATTENDED
from core.types import Explanation

Weighting = Literal["attention", "gradient"]

SAME_FOR_ALL = (
    "Attention rollout does not depend on the class: this heatmap is the same for every class. Use "
    "weighting='gradient' or transformer_attribution for evidence of one class.",
)


@heatmap_method(family=Family.ATTENTION, sign=ATTENDED, cost=gradients())
def attention_rollout(query: Query, *, weighting: Weighting = "attention") -> Explanation:
    """Multiply attention through all layers: how much each patch can flow into what the network reads.

    Abnar & Zuidema 2020 (arXiv:2005.00928), section 3: A = (mean over heads + identity) / 2, rows to a sum of 1,
    multiplied layer by layer; the rows of the class and distillation tokens that the network reads, or without them
    the mean over all places. It is the same for every class. ``weighting="gradient"`` is after Gildenblat (2020,
    vit-explain). Needs a network that attends from all tokens to all tokens, as ViT, DeiT, DINOv2 and CLIP do.

    Parameters
    ----------
    weighting
        What is multiplied: attention itself, which is the same for every class, or the positive part of the mean over
        heads of attention times the gradient of the class's logit.
    """

    def combine(read: Attentions) -> Tensor:
        if weighting == "attention":
            return roll_out(mean_of_heads(read.weights))
        products = [a * g for a, g in zip(read.weights, read.gradients, strict=True)]
        return roll_out([one.clamp(min=0) for one in mean_of_heads(products)])

    maps, logits = explain_by_attention(query, combine)
    warnings = SAME_FOR_ALL if weighting == "attention" else ()
    return query.explain(maps, logits=logits, warnings=warnings, parameters={"weighting": weighting})


def roll_out(attentions: list[Tensor]) -> Tensor:
    """Multiply attention (B, N, N), the first layer's first, each with its residual connection."""
    identity = torch.eye(attentions[0].shape[-1], dtype=attentions[0].dtype)
    whole = identity.expand_as(attentions[0])
    for attention in attentions:
        both = (attention + identity) / 2
        whole = both / both.sum(2, keepdim=True) @ whole
    return whole
