"""Bayesian teaching by saliency maps: the mask a learner expects, given what the classifier says.

Yang et al. 2021 (doi:10.1038/s41598-021-89267-4) and Folke et al. 2021, appendix B.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from core.attribution.common import certificates, checked
from core.classifier import Classifier
from core.device import draw_seed
from core.errors import ForetellError
from core.masked import masked_probabilities
from core.teaching.masks import MaskPrior
from core.types import Explanation, Progress, silent

Fill = Literal["mean", "black"]

ENOUGH_EFFECTIVE_SAMPLES = 100
"""Fewer than this and the map's standard error exceeds a tenth of the mask's own standard deviation."""

SMALLEST = torch.finfo(torch.float64).tiny


def bayesian_teaching(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    *,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    samples: int = 1000,
    fill: Fill = "mean",
    length_scale: float = 0.1,
    mean: float = -100.0,
    amplitude: float = 100.0,
    chunk: int = 0,
) -> Explanation:
    """Expected mask E[m | x, c], each random mask weighted by how surely the classifier still says the target.

    E[m | x, c] = sum_i m_i q_i / sum_i q_i with m_i from the prior and q_i the softmax probability of c for the
    picture masked by m_i. `Explanation.zero` is the prior's mean: a classifier that does not look gives it
    everywhere. `Explanation.error` is the standard error of this ratio by the delta method,
    sqrt(sum q_i^2 (m_i - E)^2) / sum q_i. ``chunk`` (0: by memory) changes speed and memory, never the map.
    """
    if samples < 2:
        raise ForetellError(f"samples={samples}: Bayesian-teaching maps need at least 2 masks.")
    inputs, classes = checked(classifier, images, targets)
    seed = draw_seed(generator or torch.Generator().manual_seed(0))
    prior = MaskPrior(*classifier.input_shape[1:], length_scale, mean, amplitude)
    sums = _WeightedSums(len(inputs), *classifier.input_shape[1:])
    done = 0
    for block, probabilities in masked_probabilities(
        classifier, inputs, prior.blocks(samples, seed), fill=classifier.fill(fill), chunk=chunk or None
    ):
        weights = probabilities.gather(2, classes[:, None, None].expand(-1, len(block), 1))[:, :, 0]
        sums.add(block, weights)
        done += len(block)
        progress(done, samples, "masks")
    parameters = {"fill": fill, "length_scale": length_scale, "mean": mean, "amplitude": amplitude}
    known = [_facts(sums, i, samples, seed, parameters) for i in range(len(inputs))]
    return Explanation(
        sums.expectation.float(),
        prior.expected,
        certificates(classifier, "bayesian_teaching", inputs, classes, known),
        sums.standard_error.float(),
    )


class _WeightedSums:
    """Streamed sums of q, q^2, q m, q^2 m and q^2 m^2 in float64: all the estimate and its error need."""

    def __init__(self, images: int, height: int, width: int) -> None:
        self.shape = (images, height, width)
        self.weight, self.weight2 = (torch.zeros(images, dtype=torch.float64) for _ in range(2))
        self.mask, self.mask_w2, self.mask2_w2 = (
            torch.zeros(images, height * width, dtype=torch.float64) for _ in range(3)
        )

    def add(self, masks: Tensor, weights: Tensor) -> None:
        """Take in masks (n, H, W) with weights (B, n)."""
        flat = masks.flatten(1).double()
        squared = weights * weights
        self.weight += weights.sum(1)
        self.weight2 += squared.sum(1)
        self.mask += weights @ flat
        self.mask_w2 += squared @ flat
        self.mask2_w2 += squared @ (flat * flat)

    @property
    def expectation(self) -> Tensor:
        """sum q m / sum q, (B, H, W)."""
        return self._mean.view(self.shape)

    @property
    def standard_error(self) -> Tensor:
        """Delta-method standard error of `expectation`, (B, H, W)."""
        e = self._mean
        spread = self.mask2_w2 - 2 * e * self.mask_w2 + e * e * self.weight2[:, None]
        return (spread.clamp(min=0).sqrt() / self._total).view(self.shape)

    @property
    def effective(self) -> Tensor:
        """(sum q)^2 / sum q^2, (B,)."""
        return self.weight**2 / self.weight2.clamp(min=SMALLEST)

    @property
    def _total(self) -> Tensor:
        return self.weight[:, None].clamp(min=SMALLEST)

    @property
    def _mean(self) -> Tensor:
        return self.mask / self._total


def _facts(sums: _WeightedSums, i: int, samples: int, seed: int, parameters: dict[str, Any]) -> dict[str, Any]:
    effective = float(sums.effective[i])
    warnings: tuple[str, ...] = ()
    if not effective >= ENOUGH_EFFECTIVE_SAMPLES:
        warnings = (
            f"Only {effective:.0f} of {samples} masks count (effective sample size): much of this map is noise. "
            "Raise 'samples'.",
        )
    return {
        "standard_error": float(sums.standard_error[i].max()),
        "effective_samples": effective,
        "samples": samples,
        "seed": seed,
        "parameters": parameters,
        "warnings": warnings,
    }
