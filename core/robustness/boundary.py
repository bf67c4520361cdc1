"""Distance to the decision boundary: margins in chosen directions, and critical samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from core.attribution.common import prepare_inputs
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.gradients import differentiate
from core.robustness import ATTACKS
from core.shares import share_of
from core.types import Progress, silent

Projection = Callable[[Tensor], Tensor]
OVERSHOOT = 0.02
"""DeepFool goes this share beyond the boundary it has linearised."""


@dataclass(frozen=True)
class CriticalSamples:
    """Share of images near which the prediction changes, with its 95% interval (Wilson)."""

    ratio: float
    interval: tuple[float, float]
    critical: Tensor


def critical_samples(
    classifier: Classifier,
    images: Tensor,
    *,
    attack: str = "langevin",
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    **parameters: Any,
) -> CriticalSamples:
    """Compute the critical sample ratio (Arpit et al. 2017, arXiv:1706.05394, section 3.3) of images (B, C, H, W).

    A lower bound: a search that finds nothing proves nothing.
    """
    predictions = classifier.logits(images).argmax(1).tolist()
    is_critical = ATTACKS[attack](
        classifier, images, predictions, generator=generator, progress=progress, **parameters
    ).fooled
    ratio, low, high = share_of(int(is_critical.sum()), len(is_critical))
    return CriticalSamples(ratio, (low, high), is_critical)


def margins(
    classifier: Classifier,
    images: Tensor,
    directions: Tensor | None = None,
    *,
    candidates: int = 10,
    steps: int = 50,
    progress: Progress = silent,
) -> Tensor:
    """Measure the L2 distance (B,) to another class in the span of ``directions`` (S, C, H, W), or anywhere (None).

    Ortiz-Jimenez et al. 2020 (arXiv:2002.06349), definitions 1 and 2, by DeepFool (Moosavi-Dezfooli et al. 2015,
    arXiv:1511.04599) with its gradients projected, among the ``candidates`` likeliest other classes; then the last
    stretch is halved until the boundary is met to 1e-4 of the distance. An upper bound of the least one; infinite where
    no other class is met in ``steps`` steps. In the unit of the network's input.
    """
    if directions is not None and (directions.ndim != 4 or directions.shape[1:] != images.shape[1:]):
        raise ForetellError(f"Directions {tuple(directions.shape)} are not (S, C, H, W) of {tuple(images.shape[1:])}.")
    project = _identity if directions is None else _projection_to(directions)
    return margins_within(classifier, images, project, candidates=candidates, steps=steps, progress=progress)


def margins_within(
    classifier: Classifier,
    images: Tensor,
    project: Projection,
    *,
    candidates: int = 10,
    steps: int = 50,
    progress: Progress = silent,
) -> Tensor:
    """Measure `margins` (B,) in the subspace to which ``project`` projects changes (C * H * W,) float64."""
    distances = []
    for i, image in enumerate(images):
        distances.append(_margin(classifier, image[None], project, candidates, steps))
        progress(i + 1, len(images), "walking to the boundary")
    return torch.tensor(distances, dtype=torch.float64)


def _identity(vector: Tensor) -> Tensor:
    return vector


def _projection_to(directions: Tensor) -> Projection:
    basis = torch.linalg.qr(directions.double().flatten(1).T).Q
    return lambda vector: basis @ (basis.T @ vector)


def _margin(classifier: Classifier, image: Tensor, project: Projection, candidates: int, steps: int) -> float:
    inputs, _ = prepare_inputs(classifier, image, [0])
    predicted = int(classifier.logits(inputs).argmax())
    change = torch.zeros(inputs[0].numel(), dtype=torch.float64)
    for _ in range(steps):
        change += (1 + OVERSHOOT) * _nearest(classifier, inputs, change, predicted, project, candidates)
        if not torch.isfinite(change).all():
            return math.inf
        if _predict(classifier, inputs, change) != predicted:
            return float(change.norm()) * _last_share(classifier, inputs, change, predicted)
    return math.inf


def _nearest(
    classifier: Classifier, inputs: Tensor, change: Tensor, predicted: int, project: Projection, candidates: int
) -> Tensor:
    """Compute the least change that would cross the nearest boundary if the logits were linear."""
    x = _apply_change(inputs, change).to(classifier.device).requires_grad_()
    with classifier.differentiable() as network, torch.enable_grad():
        logits = network(x.clone())[0]
        others = [int(k) for k in logits.argsort(descending=True) if int(k) != predicted][:candidates]
        own = differentiate(logits[predicted], x, retain_graph=True)[0]
        steps = [differentiate(logits[k], x, retain_graph=True)[0] - own for k in others]
    logits = logits.detach()
    best, least = torch.full_like(change, math.inf), math.inf
    for k, gradient in zip(others, steps, strict=True):
        w = project(gradient.detach().cpu().double().flatten())
        gap, norm = float(logits[predicted] - logits[k]), float(w.norm())
        if norm > 0 and gap / norm < least:
            least, best = gap / norm, max(gap, 1e-6) / norm**2 * w
    return best


def _last_share(classifier: Classifier, inputs: Tensor, change: Tensor, predicted: int) -> float:
    """Find the least share of the change that keeps the other class, by bisection, as if there were one boundary."""
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if _predict(classifier, inputs, middle * change) == predicted else (low, middle)
    return high


def _predict(classifier: Classifier, inputs: Tensor, change: Tensor) -> int:
    return int(classifier.logits(_apply_change(inputs, change)).argmax())


def _apply_change(inputs: Tensor, change: Tensor) -> Tensor:
    return inputs + change.to(inputs.dtype).view_as(inputs)


def directions_between(images: Tensor, labels: Sequence[int], first: int, second: int) -> Tensor:
    """Return differences (S, C, H, W) of images of two classes, in pairs: the directions that tell them apart."""
    chosen = [images[torch.tensor([label == k for label in labels])] for k in (first, second)]
    size = min(map(len, chosen))
    if not size:
        raise ForetellError(f"There is no image of class {first if not len(chosen[0]) else second}.")
    return chosen[0][:size] - chosen[1][:size]
