"""Heatmaps of x-features by contrastive excitation backpropagation: which places excite an x-feature, and which do not.

Qi, Khorram & Li 2018 (arXiv:1709.05360) draw their x-features so; the method is of Zhang et al. 2016
(arXiv:1608.00507), section 3.3, with an x-feature in the place of a class: the encoder continues the network upwards.
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.attribution.relevance.excitation import LOSING, WINNING, trace_excitation
from core.attribution.relevance.linear_maps import dense
from core.attribution.relevance.rules import AlphaBeta, Flow
from core.concepts.x_features import XFeatures
from core.network.classifier import Classifier


def trace_x_features(classifier: Classifier, inputs: Tensor, x_features: XFeatures, source: str, layer: str) -> Tensor:
    """Trace x-features of the layer ``source`` down to ``layer``: contrastive winning probabilities (M, n, h, w).

    How likely a search for the x-feature ends at a place, less how likely one for its opposite does, whose weights in
    the encoder's last layer are negated. 0 for an image in which a rectified x-feature is 0: nothing wins there.

    Raises
    ------
    ForetellError
        A part of the network without a rule, or a ``layer`` without places or not below ``source``.
    """

    def start(maps: Tensor) -> Tensor:
        contrast = start_search(x_features, maps, WINNING) - start_search(x_features, maps, LOSING)
        if x_features.rectified:
            contrast = contrast * (x_features.encode(maps.mean((2, 3))) > 0)[:, :, None, None, None]
        return contrast.transpose(0, 1)

    return trace_excitation(classifier, inputs, source, start, layer)


def start_search(x_features: XFeatures, maps: Tensor, first: AlphaBeta) -> Tensor:
    """Compute winning probabilities (M, n, S, h, w) in a layer with these outputs (M, S, h, w), for each x-feature.

    One layer of the encoder after the other, the last by the rule ``first``, then from the mean over places to these.
    """
    layers = [dense(weights.float(), None) for weights in x_features.layers]
    n, count = len(x_features.weights), len(maps)
    below = [maps.mean((2, 3)).repeat_interleave(n, 0)]
    for layer in layers[:-1]:
        below.append(layer.apply(below[-1], layer.weight).relu())
    won = torch.eye(n).repeat(count, 1)
    for i, layer in reversed(list(enumerate(layers))):
        rule = first if layer is layers[-1] else WINNING
        won = rule(Flow(layer, below[i], layer.apply(below[i], layer.weight), won))
    excites = maps.clamp(min=0)
    shares = torch.nan_to_num(excites / excites.sum((2, 3), keepdim=True))  # of the places of a channel that is 0, none
    return won.view(count, n, -1, 1, 1) * shares[:, None]
