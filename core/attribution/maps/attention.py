"""Attention weights of an unmodified transformer, and their gradients, read while it runs.

Fused attention, `torch.nn.functional.scaled_dot_product_attention` and `multi_head_attention_forward`, is computed
written out; a softmax that multiplies values is read as it is. So the same network gives the same weights, whichever of
these it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from core.attribution.method import Query
from core.attribution.places.layout import Layout
from core.attribution.places.place import enlarge_maps, select_place
from core.attribution.relevance import calls
from core.attribution.relevance.lrp import refuse_hidden
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.gradients import differentiate
from core.network.interception import Call, Interception

ELSEWHERE = "Use a method for any network, such as grad_cam, integrated_gradients or bayesian_teaching."
SAME_VALUES = frozenset(("dropout", "to", "type", "type_as", "float", "double", "contiguous", "clone"))
PRODUCTS = frozenset(("matmul", "bmm"))


@dataclass(frozen=True)
class Attentions:
    """Attention of each layer for a batch, the first layer's first, with d logit[target] / d attention.

    Attributes
    ----------
    weights, gradients
        (B, heads, N, N) each: row i says what token i takes from each token.
    logits
        (B, K).
    """

    weights: list[Tensor]
    gradients: list[Tensor]
    logits: Tensor


class AttentionReader(Interception):
    """Keep the attention weights of a forward pass, with their graph."""

    def __init__(self, who: str, method: str) -> None:
        super().__init__()
        self.who, self.method = who, method
        self.kept: list[Tensor] = []
        self.unused: list[Tensor] = []
        """Softmaxes over the last axis that have not multiplied values."""

    def intercept(self, call: Call) -> Any:
        """Write fused attention out; follow each softmax to the product with its values."""
        if call.name in calls.ATTENTION:
            args, named = call.written
            try:
                with self:
                    return calls.ATTENTION[call.name](*args, **named)
            except NotImplementedError as error:
                raise ForetellError(
                    f"{self.who} computes {call.name}() with {error}, which {self.method} cannot read. {ELSEWHERE}"
                ) from None
        if "attention" in call.name or call.name == "transformer_encoder_layer_fwd":
            raise ForetellError(f"{self.who} computes {call.name}(), which {self.method} cannot read. {ELSEWHERE}")
        result = call.run()
        if call.name == "softmax" and result.ndim > 2:
            last = calls.softmax_dim(*call.args, **call.named) in (-1, result.ndim - 1)
            return self._start(result) if last else result
        first = call.args[0] if call.args else None
        source = getattr(first, "_foretell_attention", None)
        if source is not None and call.name in SAME_VALUES:
            result._foretell_attention = source
        elif source is not None and call.name in PRODUCTS:
            self.unused = [one for one in self.unused if one is not source]
            self.kept.append(source)
        return result

    def _start(self, weights: Tensor) -> Tensor:
        weights = weights if weights.requires_grad else weights.detach().requires_grad_()
        weights._foretell_attention = weights  # type: ignore[attr-defined]
        self.unused.append(weights)
        return weights


def read_attentions(classifier: Classifier, inputs: Tensor, targets: Tensor, method: str) -> Attentions:
    """Read the attention of every layer for inputs (B, C, H, W).

    Raises
    ------
    ForetellError
        A network without attention between all its tokens, or whose attention is used otherwise than as weights.
    """
    with classifier.exclusive() as module, classifier.gradients(), torch.enable_grad():
        refuse_hidden(classifier, module, method)
        reader = AttentionReader(classifier.name, method)
        with reader:
            logits = module(inputs.to(classifier.device, copy=True))
        _refuse_unlike(classifier, reader, len(inputs), method)
        chosen = logits.gather(1, targets.to(classifier.device)[:, None]).sum()
        slopes = differentiate(chosen, reader.kept, allow_unused=True)
    gradients = [torch.zeros_like(a) if g is None else g for a, g in zip(reader.kept, slopes, strict=True)]
    weights, gradients = (
        [one.detach().double().cpu().view(len(inputs), -1, *one.shape[-2:]) for one in ones]
        for ones in (reader.kept, gradients)
    )
    return Attentions(weights, gradients, logits.detach().float().cpu())


def _refuse_unlike(classifier: Classifier, reader: AttentionReader, batch: int, method: str) -> None:
    """Return the error for attention that is not from all tokens to all tokens, in every layer."""
    kept, name = reader.kept, classifier.name
    if not kept:
        raise ForetellError(f"{name} has no attention between places, whose weights {method} reads. {ELSEWHERE}")
    shapes = {(len(one), *one.shape[-2:]) for one in kept}
    whole = len(shapes) == 1 and all(one.shape[-1] == one.shape[-2] for one in kept)
    if not whole or len(kept[0]) != batch or any(one.ndim > 4 for one in kept):
        seen = ", ".join(sorted({" x ".join(map(str, one.shape)) for one in kept}))
        raise ForetellError(
            f"{name} attends within windows, between tokens of different sizes or from a few tokens only (attention of "
            f"{seen}), and {method} is defined for attention of all tokens to all tokens in every layer. {ELSEWHERE}"
        )
    if not all(map(_depends, kept[1:], kept)):
        raise ForetellError(
            f"{name} has attention in parallel branches, which are added and do not follow each other: the product "
            f"over the layers, which {method} is, has no meaning for them. {ELSEWHERE}"
        )
    if any(one.shape[-1] == one.shape[-2] for one in reader.unused):
        raise ForetellError(
            f"{name} changes its attention weights before they multiply the values, and {method} has no rule for "
            f"that. {ELSEWHERE}"
        )


def _depends(later: Tensor, earlier: Tensor) -> bool:
    """Tell whether ``later`` was computed from ``earlier``, by the graph of both."""
    sought = get_gradient_edge(earlier).node
    seen: set[Any] = set()
    waiting: list[Any] = [get_gradient_edge(later).node]
    while waiting:
        node = waiting.pop()
        if node is sought:
            return True
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [following for following, _ in node.next_functions]
    return False


def explain_by_attention(query: Query, combine: Callable[[Attentions], Tensor]) -> tuple[Tensor, Tensor]:
    """Compute heatmaps (B, H, W) and logits: what ``combine``, (B, N, N), says the output's tokens take from places."""
    classifier, method = query.classifier, query.method

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        read = read_attentions(classifier, part, chosen, method)
        layout = _find_tokens(classifier, read.weights[0].shape[-1], method)
        rows = combine(read)[:, _find_outputs(read.gradients[-1], layout)].mean(1)
        coarse = layout.to_maps(rows[..., None])[:, 0]
        return enlarge_maps(coarse.float(), part), read.logits

    return query.in_parts(compute)


def _find_tokens(classifier: Classifier, count: int, method: str) -> Layout:
    layout = select_place(classifier, "").layout
    if layout.kind != "tokens" or layout.tokens != count:
        raise ForetellError(
            f"{classifier.name} attends between {count} tokens, which are not those of a layer that keeps the places "
            f"of the image: {method} cannot say where they are. {ELSEWHERE}"
        )
    return layout


def _find_outputs(gradient: Tensor, layout: Layout) -> list[int]:
    """Return the tokens that the network reads: its class and distillation tokens, or else all places.

    Read are those whose attention in the last layer has a gradient, (B, heads, N, N).
    """
    places = layout.select_places(torch.arange(layout.tokens)[None])[0].tolist()
    others = sorted(set(range(layout.tokens)) - set(places))
    read = gradient.ne(0).any(3).any(1).any(0).tolist()
    if not any(read):  # a head of zeros
        return others[:1] or places
    return [token for token in others if read[token]] or places


def mean_of_heads(weights: Sequence[Tensor]) -> list[Tensor]:
    """Average attention (B, heads, N, N) over the heads."""
    return [one.mean(1) for one in weights]


def mean_of_positive_products(read: Attentions) -> list[Tensor]:
    """Average the positive parts of attention x gradient over the heads: Chefer et al. 2021, eq. 5."""
    return [(a * g).clamp(min=0).mean(1) for a, g in zip(read.weights, read.gradients, strict=True)]
