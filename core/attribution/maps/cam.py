"""Class activation maps: where the last feature maps contain evidence for the class.

The coarse map of a layer's size is enlarged bilinearly to the image's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from core.attribution.cost import gradients
from core.attribution.method import Query, heatmap_method
from core.attribution.places.place import LayerName, enlarge_maps, read_maps, select_layer
from core.attribution.records import Family
from core.attribution.signs import EVIDENCE, SUPPORT, Sign
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.types import Explanation

CamSign = Annotated[
    Literal["positive", "signed"],
    "Positive: evidence for the class alone, as in the paper. Signed: evidence against it, too.",
]


@heatmap_method(family=Family.FEATURE_MAPS, cost=gradients())
def cam(query: Query) -> Explanation:
    """Weight feature maps by the class's weights in the last layer: exact after global average pooling.

    Zhou et al. 2016 (arXiv:1512.04150), eq. 2: signed; the coarse heatmap's mean plus the bias is the logit. Needs a
    network that ends in global average pooling and one linear layer, and says so of any other.
    """
    classifier = query.classifier
    layer = select_layer(classifier, "")
    weights = _head(classifier)[:, :-1].float()

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        read = read_maps(classifier, part, chosen, layer)
        pooled = _find_pooled_maps(classifier.features(part), read.activation.cpu())
        if pooled is None:
            raise _not_pooled(classifier)
        return enlarge_maps(torch.einsum("bk,bkhw->bhw", weights[chosen.cpu()], pooled), part), read.logits

    maps, logits = query.in_parts(compute, "class activation maps")
    return query.explain(maps, logits=logits, parameters={"layer": layer})


def _head(classifier: Classifier) -> Tensor:
    try:
        return classifier.head
    except ForetellError:
        raise _not_pooled(classifier) from None


def _find_pooled_maps(features: Tensor, activation: Tensor) -> Tensor | None:
    """Return the feature maps (B, K, h, w) whose means are ``features``; a ReLU may lie between layer and pooling."""
    tolerance = 1e-3 * float(features.abs().max())
    for candidate in (activation, activation.relu()):
        means = candidate.mean((2, 3))
        if means.shape == features.shape and torch.allclose(means, features, rtol=1e-3, atol=tolerance):
            return candidate
    return None


def _not_pooled(classifier: Classifier) -> ForetellError:
    return ForetellError(
        f"{classifier.name} does not end in global average pooling and one linear layer, which cam needs. "
        "Use grad_cam, which gives the same heatmap up to a factor where cam applies, and works elsewhere too."
    )


def support_unless_signed(parameters: Mapping[str, Any]) -> Sign:
    """Return what a class activation map means: ``sign="signed"`` also shows evidence against the class."""
    return EVIDENCE if parameters.get("sign") == "signed" else SUPPORT


@heatmap_method(family=Family.FEATURE_MAPS, sign=support_unless_signed, cost=gradients())
def grad_cam(query: Query, *, layer: LayerName = "", sign: CamSign = "positive") -> Explanation:
    """Weight each feature map of a layer by the mean gradient of the target's logit with respect to it.

    Selvaraju et al. 2017 (arXiv:1610.02391), eq. 1 and 2; ``sign="signed"`` leaves out the ReLU of eq. 2.
    """
    return _explain(query, layer, sign, grad_cam_map)


def grad_cam_map(activation: Tensor, gradient: Tensor) -> Tensor:
    """Apply eq. 1 and 2 without the ReLU: (B, h, w) from twice (B, K, h, w)."""
    return (gradient.mean((2, 3), keepdim=True) * activation).sum(1)


@heatmap_method(family=Family.FEATURE_MAPS, sign=support_unless_signed, cost=gradients())
def grad_cam_plus_plus(query: Query, *, layer: LayerName = "", sign: CamSign = "positive") -> Explanation:
    """Weight feature maps by the locations that raise the logit, so that several objects of a class all show.

    Chattopadhyay et al. 2018 (arXiv:1710.11063), eq. 19 for the class score exp(logit). Its factor exp(logit), the
    same for the whole heatmap, is left out: it overflows and changes no comparison of places.
    """
    return _explain(query, layer, sign, _grad_cam_plus_plus)


def _grad_cam_plus_plus(activation: Tensor, gradient: Tensor) -> Tensor:
    # Eq. 19, g^2 / (2 g^2 + S g^3) with S the sum of A, divided by g^2: no 0 / 0 and no epsilon larger than g^2.
    raising = gradient.relu()
    divisor = 2 + activation.sum((2, 3), keepdim=True) * raising
    if not bool((divisor > 0).all()):
        raise ForetellError(
            "grad_cam_plus_plus divides by 0 or less where a layer's features are mostly negative. "
            "Choose a layer after a ReLU, or grad_cam."
        )
    return ((raising / divisor).sum((2, 3), keepdim=True) * activation).sum(1)


@heatmap_method(family=Family.FEATURE_MAPS, sign=support_unless_signed, cost=gradients())
def layer_cam(query: Query, *, layer: LayerName = "", sign: CamSign = "positive") -> Explanation:
    """Weight every location of each feature map by its own positive gradient: detailed also from early layers.

    Jiang et al. 2021 (doi:10.1109/TIP.2021.3089943), eq. 5 to 7.
    """
    return _explain(query, layer, sign, _layer_cam)


def _layer_cam(activation: Tensor, gradient: Tensor) -> Tensor:
    return (gradient.relu() * activation).sum(1)


def _explain(query: Query, layer: str, sign: CamSign, combine: Callable[[Tensor, Tensor], Tensor]) -> Explanation:
    """Compute heatmaps ``combine(activation, gradient)``, (B, h, w) from twice (B, K, h, w), enlarged."""
    layer = select_layer(query.classifier, layer)

    def compute(part: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        read = read_maps(query.classifier, part, chosen, layer)
        coarse = combine(read.activation, read.gradient)
        return enlarge_maps(coarse.relu() if sign == "positive" else coarse, part), read.logits

    maps, logits = query.in_parts(compute, "class activation maps")
    parameters = {"layer": layer, "sign": sign}
    return query.explain(maps, logits=logits, parameters=parameters, empty=remedy(layer, sign))


def remedy(layer: str, sign: CamSign) -> str:
    """Say what an empty heatmap of a layer means, and what may help."""
    if sign == "signed":
        return f"Nothing in layer {layer!r} is evidence for or against this class."
    return f"Nothing in layer {layer!r} is evidence for this class. Try sign='signed'."
