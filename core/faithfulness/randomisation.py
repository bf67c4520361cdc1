"""Cascading randomisation of the network: does a method's heatmap depend on the trained weights?

Adebayo et al. 2018 (arXiv:1810.03292), section 3.1: layers are re-initialised one after the other from the output
down, and the heatmaps of these networks are compared with the trained one's.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from core.attribution.method import HeatmapMethod
from core.attribution.outside.opening import open_registered
from core.errors import ForetellError
from core.faithfulness.agreement import correlate_ranks, rank_pixels
from core.network.classifier import Classifier
from core.network.device import draw_seed
from core.parameters import parse_parameters
from core.types import Progress, silent


@dataclass(frozen=True)
class Randomisation:
    """Similarity of a method's heatmaps to the originals as layers are randomised.

    Attributes
    ----------
    method, seed, threshold
        The settings it was made with.
    layers
        Names of the L layers with parameters, in the order they were re-initialised: the output's first.
    correlations
        (L, B) float64: Spearman's rank correlation of the absolute heatmap (its distance from `Explanation.zero`) with
        that of the trained network, after this layer and all above it were re-initialised. A map of one value
        correlates with nothing: 0.
    repeatability
        (B,) float64: the same correlation of two heatmaps of the trained network from different draws. 1 for
        deterministic methods; where it is low, low `correlations` are noise and prove nothing.
    """

    method: str
    seed: int
    threshold: float
    layers: tuple[str, ...]
    correlations: Tensor
    repeatability: Tensor

    @property
    def is_flagged(self) -> bool:
        """Whether heatmaps of the fully randomised network are, on average, still similar to the trained one's."""
        return float(self.correlations[-1].mean()) > self.threshold


def cascading_randomisation(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    method: str | HeatmapMethod,
    *,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    threshold: float = 0.5,
    parameters: Mapping[str, Any] | None = None,
) -> Randomisation:
    """Correlate a method's heatmaps with the originals as layers are re-initialised from the output down.

    Layers are the modules that own parameters, from the last registered to the first; each is drawn again as its class
    does when it is made, or, where it cannot, from a normal distribution of its parameters' own mean and standard
    deviation. Only copies change. ``method`` is a registered name, or a method of `core.attribution.outside.opening`,
    with its ``parameters``; every heatmap has draws of its own, so that shared draws do not pass for likeness.

    Raises
    ------
    ForetellError
        An unknown method or parameter; a network without parameters.
    """
    attribute = open_registered(method) if isinstance(method, str) else method
    given = parse_parameters(attribute, parameters or {})
    seed = draw_seed(generator or torch.Generator().manual_seed(0))
    draws = torch.Generator().manual_seed(seed)

    def rank_maps(network: Classifier) -> np.ndarray:
        own = torch.Generator().manual_seed(draw_seed(draws))
        return rank_pixels(attribute(network, images, targets, generator=own, **given))

    original, repeated = rank_maps(classifier), rank_maps(classifier)
    names, rows = [], []
    for name, total, network in _cascade(classifier, draws):
        names.append(name)
        rows.append(torch.from_numpy(correlate_ranks(original, rank_maps(network))))
        progress(len(names), total, "layers")
    same = torch.from_numpy(correlate_ranks(original, repeated))
    return Randomisation(attribute.__name__, seed, threshold, tuple(names), torch.stack(rows), same)


def reinitialise_classifier(classifier: Classifier, generator: torch.Generator) -> Classifier:
    """Return the classifier with every layer re-initialised in a copy, as at the end of the cascade.

    Raises
    ------
    ForetellError
        A network without parameters.
    """
    forgetting, layers = _layers(classifier)
    for _, layer in layers:
        _reinitialise(layer, draw_seed(generator))
    return copy_with_network(classifier, forgetting)


def _cascade(classifier: Classifier, draws: torch.Generator) -> Iterator[tuple[str, int, Classifier]]:
    """Yield the layer's name, the number of layers, and the classifier with it and all above it re-initialised."""
    forgetting, layers = _layers(classifier)
    for name, layer in layers:
        _reinitialise(layer, draw_seed(draws))
        yield name, len(layers), copy_with_network(classifier, copy.deepcopy(forgetting))


def _layers(classifier: Classifier) -> tuple[nn.Module, list[tuple[str, nn.Module]]]:
    """Return a copy of the network and its modules that own parameters, the output's first."""
    with classifier.exclusive() as module:
        forgetting = copy.deepcopy(module).cpu()
    layers = [
        (name, m) for name, m in forgetting.named_modules() if next(m.parameters(recurse=False), None) is not None
    ]
    if not layers:
        raise ForetellError(f"{classifier.name} has no parameters to randomise: give a trained network.")
    return forgetting, layers[::-1]


@torch.no_grad()
def _reinitialise(layer: nn.Module, seed: int) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # not torch.manual_seed, which also seeds the GPUs' generators
        if callable(reset := getattr(layer, "reset_parameters", None)):
            reset()
            return
        for parameter in layer.parameters(recurse=False):
            deviation, mean = torch.std_mean(parameter, correction=0)
            parameter.normal_(float(mean), float(deviation))


def copy_with_network(classifier: Classifier, module: nn.Module, what: str = "randomised") -> Classifier:
    """Return the classifier with another network, of the same inputs and classes; ``what`` is added to its name."""
    sibling = Classifier(
        module,
        classifier.preprocess,
        classifier.categories,
        name=f"{classifier.name}, {what}",
        device=classifier.device,
        mean_colour=classifier.mean_colour,
    )
    sibling.copied_from = classifier
    return sibling
