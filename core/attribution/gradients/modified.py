"""Modified backpropagation: the gradient with other rules for the ReLUs, for sharp heatmaps of what raises a logit.

These heatmaps show much of the image itself: with random weights in the last layers they look nearly the same (Adebayo
et al. 2018, arXiv:1810.03292).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from core.attribution.common import gradient_and_logits
from core.attribution.cost import gradients
from core.attribution.gradients.rectifiers import RectifierRule, Rectifiers
from core.attribution.maps.cam import grad_cam_map
from core.attribution.method import Query, heatmap_method
from core.attribution.places.activations import hook_layer, make_unreached_error
from core.attribution.places.place import LayerName, enlarge_maps, select_layer, select_place
from core.attribution.records import Family
from core.attribution.signs import MODIFIED
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.gradients import differentiate
from core.network.interception import hides_calls
from core.types import Explanation

ELSEWHERE = "Use a method for any network, such as integrated_gradients, smoothgrad or bayesian_teaching."


@heatmap_method(family=Family.GRADIENTS, sign=MODIFIED, cost=gradients())
def deconvnet(query: Query) -> Explanation:
    """Backpropagate only positive values through every ReLU, whether or not it was active in the forward pass.

    Zeiler & Fergus 2013 (arXiv:1311.2901), section 2.1, from the target's logit down to the pixels; signed, summed
    over the channels. Needs a network with ReLUs.
    """
    return _explain(query, "deconvnet")


@heatmap_method(family=Family.GRADIENTS, sign=MODIFIED, cost=gradients())
def guided_backpropagation(query: Query) -> Explanation:
    """Backpropagate only positive values, and only through ReLUs that were active in the forward pass.

    Springenberg et al. 2014 (arXiv:1412.6806), section 3.4 and figure 1; signed, summed over the channels. Needs a
    network with ReLUs.
    """
    return _explain(query, "guided")


@heatmap_method(family=Family.FEATURE_MAPS, sign=MODIFIED, cost=gradients())
def guided_grad_cam(query: Query, *, layer: LayerName = "") -> Explanation:
    """Multiply guided backpropagation by Grad-CAM: fine detail, restricted to where the class is.

    Selvaraju et al. 2017 (arXiv:1610.02391), section 3.2. Grad-CAM is positive and enlarged bilinearly. Needs a network
    with ReLUs.
    """
    layer = select_layer(query.classifier, layer)
    others: set[str] = set()

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        fine, coarse, logits = _fine_and_coarse(query.classifier, part, chosen, layer, others)
        return fine * enlarge_maps(coarse.relu(), part), logits

    maps, logits = query.in_parts(compute, "guided class activation maps")
    empty = f"Guided backpropagation and layer {layer!r} do not overlap. Try another layer."
    warnings = _collect_warnings(others)
    return query.explain(maps, logits=logits, warnings=warnings, parameters={"layer": layer}, empty=empty)


def _explain(query: Query, rule: RectifierRule) -> Explanation:
    """Explain by d logit[target] / d input under the rule, summed over channels."""
    others: set[str] = set()

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        with _rectifying(query.method, query.classifier, rule, others):
            gradient, logits = gradient_and_logits(query.classifier, part, chosen)
        return gradient.sum(1), logits

    maps, logits = query.in_parts(compute)
    return query.explain(maps, logits=logits, warnings=_collect_warnings(others))


def _fine_and_coarse(
    classifier: Classifier, inputs: Tensor, targets: Tensor, layer: str, others: set[str]
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute guided backpropagation (B, H, W), Grad-CAM of ``layer`` (B, h, w) and logits (B, K) in one pass."""
    kept: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        kept[:] = [output]
        return output.clone()  # an in-place ReLU behind the layer would overwrite what is kept

    inputs = inputs.detach().to(classifier.device).requires_grad_()
    with _rectifying("guided_grad_cam", classifier, "plain", others) as (module, rectifiers), torch.enable_grad():
        with hook_layer(module.get_submodule(layer), keep):
            logits = module(inputs.clone())
        chosen = logits.gather(1, targets.to(classifier.device)[:, None]).sum()
        (coarse,) = differentiate(chosen, kept, retain_graph=True, allow_unused=True)
        if coarse is None:
            raise make_unreached_error(classifier, layer)
        rectifiers.rule = "guided"
        (fine,) = differentiate(chosen, inputs)
    layout = select_place(classifier, layer).layout
    maps = (fine.sum(1), grad_cam_map(layout.to_maps(kept[0]), layout.to_maps(coarse)), logits)
    return tuple(values.detach().float().cpu() for values in maps)  # type: ignore[return-value]


@contextmanager
def _rectifying(
    method: str, classifier: Classifier, rule: RectifierRule, others: set[str]
) -> Iterator[tuple[nn.Module, Rectifiers]]:
    """Run the network with its ReLUs under ``rule``; note other activations, and refuse a network without ReLUs."""
    with classifier.exclusive() as module, classifier.gradients():
        if hides_calls(module):
            raise ForetellError(
                f"{classifier.name} has TorchScript or compiled parts, in which {method} cannot change the ReLUs. "
                f"Load the network uncompiled. {ELSEWHERE}"
            )
        with Rectifiers(rule) as rectifiers:
            yield module, rectifiers
    others |= rectifiers.others
    if not rectifiers.met:
        has = f" (it has {', '.join(sorted(others))})" if others else ""
        raise ForetellError(f"{classifier.name} has no ReLU{has}, and {method} changes nothing else. {ELSEWHERE}")


def _collect_warnings(others: set[str]) -> tuple[str, ...]:
    if not others:
        return ()
    return (f"Only ReLUs are changed; other activations keep their own gradient: {', '.join(sorted(others))}.",)
