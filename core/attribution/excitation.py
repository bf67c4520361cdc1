"""Excitation backpropagation: a winning unit at the output, traced layer by layer to the units that excited it.

Zhang et al. 2016 (arXiv:1608.00507). Marginal winning probabilities are relevance shared by the z+ rule without biases
(eq. 3 and 4), starting with 1 at the class and read at a layer whose values are not negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from core.attribution.activations import hook_layer
from core.attribution.cam import enlarge_maps
from core.attribution.common import certificates, in_parts, prepare_inputs
from core.attribution.lrp import refuse_hidden
from core.attribution.places import select_layer
from core.attribution.propagation import mark_of
from core.attribution.relevance import Composite, Relevance
from core.attribution.relevance_rules import AlphaBeta, Flow
from core.classifier import Classifier
from core.errors import ForetellError
from core.types import Explanation, Progress, silent

WINNING = AlphaBeta(1, 0)
LOSING = AlphaBeta(0, -1)
"""The winners of a class whose weights are negated: what excites the evidence against it."""


def excitation_backpropagation(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    *,
    generator: torch.Generator | None = None,  # noqa: ARG001 - the contract of all methods
    progress: Progress = silent,
    layer: str = "",
) -> Explanation:
    """Compute marginal winning probabilities: how likely a top-down search for the class ends at each location.

    Zhang et al. 2016 (arXiv:1608.00507), eq. 1 to 4, summed over the channels of ``layer`` (``""``: the last with a map
    of places) and enlarged bilinearly. A probability: never negative, no evidence against.
    """
    return _explain("excitation_backpropagation", classifier, images, targets, progress, layer)


def contrastive_excitation(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    *,
    generator: torch.Generator | None = None,  # noqa: ARG001 - the contract of all methods
    progress: Progress = silent,
    layer: str = "",
) -> Explanation:
    """Subtract the winning probabilities of the class's opposite, so that what excites every class cancels.

    Zhang et al. 2016 (arXiv:1608.00507), section 3.3: the opposite has the negated weights of the last linear layer.
    Signed, where the paper keeps what is positive; summed over the channels of ``layer`` and enlarged bilinearly.
    """
    return _explain("contrastive_excitation", classifier, images, targets, progress, layer)


def _explain(
    method: str, classifier: Classifier, images: Tensor, targets: Sequence[int], progress: Progress, layer: str
) -> Explanation:
    inputs, classes = prepare_inputs(classifier, images, targets)
    layer = select_layer(classifier, layer)
    composite = Composite(WINNING, WINNING, other=WINNING, bias_absorbs=False)

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        with classifier.exclusive() as module, classifier.gradients(), torch.enable_grad():
            refuse_hidden(classifier, module, method)
            propagation = Relevance(classifier.name, method, composite)
            kept: list[Tensor] = []

            def keep(_: nn.Module, __: Any, output: Tensor) -> None:
                kept[:] = [propagation.current(output)]

            with hook_layer(module.get_submodule(layer), keep):
                logits = propagation.output(module, part.to(classifier.device, copy=True).requires_grad_())
            top, won = _start(classifier, method, logits, chosen.to(classifier.device))
            (winning,) = torch.autograd.grad(top, kept, won, allow_unused=True)
        if winning is None:
            raise ForetellError(
                f"Layer {layer!r} of {classifier.name} takes no part of its own: with a batch norm behind it, choose "
                "that. Or leave the layer out."
            )
        return enlarge_maps(winning.sum(1).float().cpu(), part), logits.detach().float().cpu()

    maps, logits = in_parts(compute, inputs, classes, progress, method.replace("_", " "))
    known: list[dict[str, Any]] = [{"parameters": {"layer": layer}} for _ in targets]
    return Explanation(maps, 0.0, certificates(classifier, method, inputs, classes, known, logits))


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
