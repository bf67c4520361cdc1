"""Score-CAM: each feature map is a mask, weighted by the classifier's output for the image seen through it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from core.attribution.cost import Cost
from core.attribution.maps.cam import CamSign, remedy, support_unless_signed
from core.attribution.method import Query, heatmap_method
from core.attribution.places.place import LayerName, enlarge_maps, read_maps, read_mean_maps, select_layer
from core.attribution.records import Family
from core.network.classifier import Classifier
from core.network.device import chunk_size
from core.network.masked import Fill, iterate_masked_scores
from core.types import Explanation


def _mask_each_map(settings: Mapping[str, Any], classifier: Classifier) -> Cost:
    return Cost(forwards=read_mean_maps(classifier, settings["layer"]).shape[1], gradients=1)


@heatmap_method(family=Family.FEATURE_MAPS, sign=support_unless_signed, cost=_mask_each_map)
def score_cam(query: Query, *, layer: LayerName = "", sign: CamSign = "positive", fill: Fill = "mean") -> Explanation:
    """Weight each feature map by the target's logit for the image seen through it; no gradients are needed.

    Wang et al. 2020 (arXiv:1910.01279), algorithm 1: the weights are the softmax over the feature maps of the logits'
    gains over the ``fill`` alone. A feature map that is the same everywhere shows nothing and has no weight; each
    other one costs a prediction.
    """
    classifier, inputs, classes = query.classifier, query.inputs, query.classes
    layer = select_layer(classifier, layer)
    origin = classifier.fill(fill)
    maps = []
    for k, x in enumerate(inputs):
        features = read_maps(classifier, x[None], classes[k : k + 1], layer).activation[0]
        scores: list[Tensor] = []
        for block in torch.split(features, chunk_size(x, classifier.device)):
            scores.append(_scores(classifier, x, origin, block, int(classes[k])))
            done = k * len(features) + sum(map(len, scores))
            query.progress(done, len(inputs) * len(features), "masks of features")
        # Where no feature map has a score the softmax is undefined, and the map of nothing is 0.
        weights = torch.cat(scores).softmax(0).nan_to_num(0).float()
        coarse = torch.einsum("k,khw->hw", weights, features)[None]
        maps.append(enlarge_maps(coarse.relu() if sign == "positive" else coarse, inputs)[0])
    parameters = {"layer": layer, "sign": sign, "fill": fill}
    return query.explain(torch.stack(maps), parameters=parameters, empty=remedy(layer, sign))


def _scores(classifier: Classifier, x: Tensor, origin: Tensor, features: Tensor, target: int) -> Tensor:
    """Compute the target's logit (n,), float64, of ``x`` through each of ``features`` (n, h, w); -inf of a flat one.

    The fill's own logit is left out: the softmax of gains is the softmax of logits.
    """
    masks = enlarge_maps(features, x[None])
    low, high = masks.amin((1, 2), keepdim=True), masks.amax((1, 2), keepdim=True)
    # Up to rounding: scaled to [0, 1] the rounding of a flat feature map would become a mask of its own.
    told = (high - low > 1e-5 * torch.maximum(high.abs(), low.abs()))[:, 0, 0]
    logits = torch.full((len(features),), -torch.inf, dtype=torch.float64)
    if told.any():
        scaled = ((masks - low) / (high - low))[told]
        seen = iterate_masked_scores(classifier, x[None], torch.tensor([target]), [scaled], fill=origin, output="logit")
        ((_, scores),) = seen
        logits[told] = scores[0].cpu()
    return logits
