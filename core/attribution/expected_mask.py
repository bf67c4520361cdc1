"""Bayesian teaching by saliency maps: the mask a learner expects, given what the classifier says.

Yang et al. 2021 (doi:10.1038/s41598-021-89267-4) and Folke et al. 2021 (arXiv:2106.09106), appendix B.
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
from core.masked import Fill, masked_probabilities
from core.teaching.expectation import WeightedMasks
from core.teaching.masks import MaskPrior
from core.types import Explanation, Progress, silent

Estimator = Literal["controlled", "plain"]

ENOUGH_EFFECTIVE_SAMPLES = 100
"""Fewer than this and the map's standard error exceeds a tenth of the mask's own standard deviation."""


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
    estimator: Estimator = "controlled",
    chunk: int = 0,
) -> Explanation:
    """Expected mask E[m | x, c], each random mask weighted by how surely the classifier still says the target.

    E[m | x, c] = sum_i m_i q_i / sum_i q_i with m_i from the prior and q_i the softmax probability of c for the
    picture masked by m_i. `Explanation.zero` is the prior's mean: a classifier that does not look gives it
    everywhere. ``estimator="plain"`` is this ratio, as in the paper; ``"controlled"`` takes out the noise of the masks
    themselves (`WeightedMasks.controlled`). `Explanation.error` is the standard error. ``chunk`` (0: by memory)
    changes speed and memory, never the map.
    """
    if samples < 2:
        raise ForetellError(f"samples={samples}: Bayesian-teaching maps need at least 2 masks.")
    inputs, classes = checked(classifier, images, targets)
    seed = draw_seed(generator or torch.Generator().manual_seed(0))
    prior = MaskPrior(*classifier.input_shape[1:], length_scale, mean, amplitude)
    sums = WeightedMasks(len(inputs), *classifier.input_shape[1:], prior.expected)
    done = 0
    for block, probabilities in masked_probabilities(
        classifier, inputs, prior.blocks(samples, seed), fill=classifier.fill(fill), chunk=chunk or None
    ):
        weights = probabilities.gather(2, classes[:, None, None].expand(-1, len(block), 1))[:, :, 0]
        sums.add(block, weights)
        done += len(block)
        progress(done, samples, "masks")
    maps, errors = sums.plain() if estimator == "plain" else sums.controlled()
    facts = {
        "samples": samples,
        "seed": seed,
        "parameters": {
            "fill": fill,
            "length_scale": length_scale,
            "mean": mean,
            "amplitude": amplitude,
            "estimator": estimator,
        },
    }
    known = [facts | _quality(error, n, samples) for error, n in zip(errors, sums.effective.tolist(), strict=True)]
    named = certificates(classifier, "bayesian_teaching", inputs, classes, known)
    return Explanation(maps.float(), prior.expected, named, errors.float())


def _quality(error: Tensor, effective: float, samples: int) -> dict[str, Any]:
    warnings: tuple[str, ...] = ()
    if not effective >= ENOUGH_EFFECTIVE_SAMPLES:
        warnings = (
            f"Only {effective:.0f} of {samples} masks count (effective sample size): much of this map is noise. "
            "Raise 'samples'.",
        )
    return {"standard_error": float(error.max()), "effective_samples": effective, "warnings": warnings}
