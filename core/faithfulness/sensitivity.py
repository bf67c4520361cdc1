"""Sensitivity: how far a heatmap can move under changes of the image too small to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from core.attribution.common import prepare_inputs
from core.attribution.method import HeatmapMethod
from core.attribution.outside.opening import open_registered
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import draw_seed, stream
from core.parameters import parse_parameters
from core.types import Progress, silent


@dataclass(frozen=True)
class Sensitivity:
    """Distances that a method's heatmaps moved under small changes of the images.

    Attributes
    ----------
    method, radius, seed
        The settings it was made with.
    distances
        (S, B) float64: Euclidean distance of each sample's heatmap from the image's own, in the heatmap's unit.
    norms
        (B,) float64: length of the image's own heatmap, from its zero.
    """

    method: str
    radius: float
    seed: int
    distances: Tensor
    norms: Tensor

    @property
    def maximum(self) -> Tensor:
        """The largest distance found, (B,): the true maximum over the ball is as large or larger."""
        return self.distances.amax(0)

    @property
    def relative(self) -> Tensor:
        """`maximum` as a share of the heatmap's norm, (B,), for methods of different units; NaN where that is 0."""
        return self.maximum / self.norms


def max_sensitivity(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    method: str | HeatmapMethod,
    *,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    samples: int = 10,
    radius: float = 0.02,
    parameters: Mapping[str, Any] | None = None,
) -> Sensitivity:
    """Measure how far a method's heatmap moves when every input value changes by at most ``radius``.

    Yeh et al. 2019 (arXiv:1901.09392), section 3, by Monte Carlo as there: ``samples`` uniform draws from the
    ball, so what is found is a lower bound, which more samples raise. ``radius`` is a share of the range
    max(x) - min(x) of the input. ``method`` is a registered name, or a method of `core.attribution.outside.opening`,
    with its ``parameters``. Its own random draws are the same for every change: what moves is the heatmap, not its
    Monte Carlo noise. Images share the changes.

    Raises
    ------
    ForetellError
        An unknown method or parameter; samples or radius out of range.
    """
    if samples < 1:
        raise ForetellError(f"samples={samples}: the largest distance needs at least 1 sample.")
    if not 0 < radius < float("inf"):
        raise ForetellError(f"radius={radius}: give a share of the input's range above 0, such as 0.02.")
    attribute = open_registered(method) if isinstance(method, str) else method
    given = parse_parameters(attribute, parameters or {})
    inputs, _ = prepare_inputs(classifier, images, targets)
    seed = draw_seed(generator or torch.Generator().manual_seed(0))

    def evidence(changed: Tensor) -> Tensor:
        draws = torch.Generator().manual_seed(seed)
        heatmaps: Tensor = attribute(classifier, changed, targets, generator=draws, **given).evidence
        return heatmaps.double().flatten(1)

    reach = radius * (inputs.amax((1, 2, 3), keepdim=True) - inputs.amin((1, 2, 3), keepdim=True))
    original, distances = evidence(inputs), []
    for sample in range(samples):
        change = 2 * torch.rand(inputs.shape[1:], generator=stream(seed, sample)) - 1
        distances.append((evidence(inputs + reach * change) - original).norm(dim=1))
        progress(sample + 1, samples, "changed images")
    return Sensitivity(attribute.__name__, radius, seed, torch.stack(distances), original.norm(dim=1))
