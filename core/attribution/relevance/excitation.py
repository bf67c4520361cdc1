"""Excitation backpropagation: a winning unit at the output, traced layer by layer to the units that excited it.

Zhang et al. 2016 (arXiv:1608.00507). Marginal winning probabilities are relevance shared by the z+ rule without biases
(eq. 3 and 4), starting with 1 at the class and read at a layer whose values are not negative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from core.attribution.cost import gradients
from core.attribution.method import Query, heatmap_method
from core.attribution.places.activations import hook_layer
from core.attribution.places.layout import Layout
from core.attribution.places.place import LayerName, enlarge_maps, find_layout, select_place
from core.attribution.records import Family
from core.attribution.relevance.lrp import refuse_hidden
from core.attribution.relevance.network import Composite, Relevance
from core.attribution.relevance.propagation import mark_of
from core.attribution.relevance.rules import AlphaBeta, Flow
from core.attribution.signs import CONTRAST, SUPPORT
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import chunk_size, in_chunks
from core.network.gradients import differentiate
from core.types import Explanation

WINNING = AlphaBeta(1, 0)
LOSING = AlphaBeta(0, -1)
"""The winners of a class whose weights are negated: what excites the evidence against it."""
COMPOSITE = Composite(WINNING, WINNING, other=WINNING, bias_absorbs=False)
REMEDY = "Use gradient times activation (gradient_x_activation), which needs no rules."


@heatmap_method(family=Family.RELEVANCE, sign=SUPPORT, cost=gradients())
def excitation_backpropagation(query: Query, *, layer: LayerName = "") -> Explanation:
    """Compute marginal winning probabilities: how likely a top-down search for the class ends at each location.

    Zhang et al. 2016 (arXiv:1608.00507), eq. 1 to 4, summed over the channels of ``layer`` and enlarged bilinearly. A
    probability: never negative, no evidence against.
    """
    return _explain(query, layer)


@heatmap_method(family=Family.RELEVANCE, sign=CONTRAST, cost=gradients())
def contrastive_excitation(query: Query, *, layer: LayerName = "") -> Explanation:
    """Subtract the winning probabilities of the class's opposite, so that what excites every class cancels.

    Zhang et al. 2016 (arXiv:1608.00507), section 3.3: the opposite has the negated weights of the last linear layer.
    Signed, where the paper keeps what is positive; summed over the channels of ``layer`` and enlarged bilinearly.
    """
    return _explain(query, layer)


def _explain(query: Query, layer: str) -> Explanation:
    classifier, method = query.classifier, query.method
    layer, layout = select_place(classifier, layer)

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        with classifier.exclusive() as module, classifier.gradients(), torch.enable_grad():
            logits, kept = _run(classifier, module, method, part, [layer])
            top, won = _start(classifier, method, logits, chosen.to(classifier.device))
            (winning,) = differentiate(top, kept[layer], won, allow_unused=True)
        if winning is None:
            raise ForetellError(
                f"Layer {layer!r} of {classifier.name} takes no part of its own: with a batch norm behind it, choose "
                "that. Or leave the layer out."
            )
        return enlarge_maps(layout.to_maps(winning).sum(1).float().cpu(), part), logits.detach().float().cpu()

    maps, logits = query.in_parts(compute)
    return query.explain(maps, logits=logits, parameters={"layer": layer})


def trace_excitation(
    classifier: Classifier, inputs: Tensor, source: str, start: Callable[[Tensor], Tensor], layer: str
) -> Tensor:
    """Trace searches that start in the layer ``source`` down to ``layer``: (B, n, h, w), summed over its channels.

    Parameters
    ----------
    start
        From the outputs (B, K, h, w) of ``source`` ((B, K, 1, 1) without places) to the probabilities (n, B, K, h, w)
        with which n searches start there.
    layer
        ``source`` itself, or a layer that keeps places below it.

    Raises
    ------
    ForetellError
        A part of the network without a rule, or a ``layer`` without places or not below ``source``.
    """
    layout, above = select_place(classifier, layer).layout, find_layout(classifier, source)

    def trace(part: Tensor) -> Tensor:
        with classifier.exclusive() as module, classifier.gradients(), torch.enable_grad():
            _, kept = _run(classifier, module, "contrastive_excitation", part, [source, layer], REMEDY)
            top = _view_maps(kept[source], above)
            won = start(top.detach().float().cpu()).to(top)
            winning = [differentiate(top, kept[layer], one, retain_graph=True, allow_unused=True)[0]
                       for one in won]  # fmt: skip
        if winning[0] is None:
            raise ForetellError(
                f"Layer {layer!r} of {classifier.name} is not below {source!r}, where the search starts: choose a "
                "layer that comes before it."
            )
        return torch.stack([layout.to_maps(one).sum(1).float().cpu() for one in winning], 1)

    return in_chunks(trace, inputs, chunk_size(inputs[0], classifier.device))


def _view_maps(output: Tensor, layout: Layout | None) -> Tensor:
    """View a layer's output as (B, K, h, w), (B, K) as (B, K, 1, 1)."""
    maps = output if layout is None else layout.to_maps(output)
    return maps if maps.ndim == 4 else maps[:, :, None, None]


def _run(
    classifier: Classifier,
    module: nn.Module,
    method: str,
    inputs: Tensor,
    layers: Sequence[str],
    remedy: str = Relevance.remedy,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the logits and the outputs of layers, through which winning probabilities are traced back."""
    refuse_hidden(classifier, module, method)
    propagation = Relevance(classifier.name, method, COMPOSITE)
    propagation.remedy = remedy
    kept: dict[str, Tensor] = {}

    def keep(layer: str) -> Callable[[nn.Module, Any, Tensor], None]:
        def hook(_: nn.Module, __: Any, output: Tensor) -> None:
            kept[layer] = propagation.current(output)

        return hook

    with ExitStack() as hooks:
        for layer in layers:
            hooks.enter_context(hook_layer(module.get_submodule(layer), keep(layer)))
        logits = propagation.output(module, inputs.to(classifier.device, copy=True).requires_grad_())
    return logits, kept


def _start(classifier: Classifier, method: str, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return where the search starts and with which probabilities: at the class, or one layer below at the contrast."""
    one = torch.zeros_like(logits).scatter_(1, targets[:, None], 1.0)
    if method == "excitation_backpropagation":
        return logits, one
    mark = mark_of(logits)
    if mark is None or mark.source is None:
        raise ForetellError(
            f"{classifier.name} does not end in one linear layer, whose weights {method} negates. "
            "Use excitation_backpropagation."
        )
    below, head = mark.source
    flow = Flow(replace(head, bias=None), below.detach(), logits.detach(), one)
    return below, WINNING(flow) - LOSING(flow)
