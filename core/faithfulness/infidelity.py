"""Infidelity: does a heatmap predict how far the output falls when parts of the image are removed?

Yeh et al. 2019 (arXiv:1901.09392), section 2, with the presence of each pixel as the input: it is
1 in the image and 0 where the substrate is, so that a heatmap (B, H, W) says what each pixel's presence gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from core.attribution.baselines import baselines
from core.attribution.common import prepare_inputs
from core.errors import ForetellError
from core.faithfulness.curves import Substrate
from core.faithfulness.ranking import fitting
from core.network.classifier import Classifier
from core.network.device import draw_seed, stream
from core.network.masked import Output, iterate_masked_scores, scores
from core.types import Progress, silent

Perturbation = Literal["square", "noise"]

BLOCK = 64
"""Perturbations drawn from one random stream."""


@dataclass(frozen=True)
class Infidelity:
    """Distance of a heatmap's prediction from the actual fall of the output.

    Attributes
    ----------
    perturbation, substrate, output, samples, seed
        The settings it was made with; infidelities of different settings do not compare.
    value, error
        (B,) float64: mean squared miss in squared units of the output, 0 for a perfect heatmap, and its Monte Carlo
        standard error.
    scale
        (B,) float64: the factor the heatmap was multiplied by, 1 unless ``scaled``.
    empty
        (B,) float64: infidelity of a map of zeros, on the same perturbations. A heatmap with more does harm.
    """

    perturbation: str
    substrate: str
    output: str
    samples: int
    seed: int
    value: Tensor
    error: Tensor
    scale: Tensor
    empty: Tensor


def infidelity(
    classifier: Classifier,
    images: Tensor,
    targets: Sequence[int],
    maps: Tensor,
    *,
    generator: torch.Generator | None = None,
    progress: Progress = silent,
    samples: int = 256,
    perturbation: Perturbation = "square",
    side: float = 0.25,
    noise: float = 0.2,
    substrate: Substrate = "mean",
    output: Output = "logit",
    scaled: bool = False,
) -> Infidelity:
    """Compute the mean squared difference between effects of perturbations predicted by ``maps`` and actual ones.

    Yeh et al. 2019 (arXiv:1901.09392), eq. 1. ``"square"`` removes a square of ``side`` times the image's shorter
    side, anywhere it fits; ``"noise"`` is the noisy baseline: all pixels go, up to a presence drawn from a normal
    distribution around 0 with standard deviation ``noise``. ``maps`` (B, H, W) have their zero at 0 and are in units
    of the output, as those of `integrated_gradients` from the same substrate; ``scaled`` multiplies each by the factor
    that fits best, for heatmaps that are in no unit. Images share the perturbations.

    Raises
    ------
    ForetellError
        Heatmaps that do not fit the images or are not finite; samples, side or noise out of range.
    """
    _check(samples, side, noise)
    inputs, classes = prepare_inputs(classifier, images, targets)
    fitted, fills = fitting(maps, inputs).double(), baselines(classifier, inputs, substrate, 0)
    seed = draw_seed(generator or torch.Generator().manual_seed(0))
    whole = scores(classifier, inputs, classes, output)
    said, lost = torch.empty(2, len(inputs), samples, dtype=torch.float64)
    for index, one in enumerate(fitted):
        own, done = slice(index, index + 1), 0
        blocks = _present(perturbation, one, samples, seed, side, noise)
        for block, predictions in iterate_masked_scores(
            classifier, inputs[own], classes[own], blocks, fill=fills[index], output=output
        ):
            part = slice(done, done := done + len(block))
            said[index, part] = ((1 - block.double()) * one).sum((1, 2))
            lost[index, part] = whole[index] - predictions[0].cpu()
            progress(index * samples + done, said.numel(), "perturbations")
    scale = (said * lost).sum(1) / said.square().sum(1) if scaled else torch.ones(len(inputs), dtype=torch.float64)
    scale = scale.nan_to_num(0)  # a heatmap that is 0 everywhere: no factor helps
    misses = (scale[:, None] * said - lost).square()
    error = misses.std(1) / samples**0.5
    return Infidelity(
        perturbation, substrate, output, samples, seed, misses.mean(1), error, scale, lost.square().mean(1)
    )


def _check(samples: int, side: float, noise: float) -> None:
    if samples < 2:
        raise ForetellError(f"samples={samples}: infidelity needs at least 2 perturbations.")
    if not 0 < side <= 1:
        raise ForetellError(f"side={side}: give a share of the image's shorter side above 0 and up to 1.")
    if not 0 <= noise < float("inf"):
        raise ForetellError(f"noise={noise}: give a standard deviation of 0 or more.")


def _present(
    perturbation: Perturbation, one: Tensor, samples: int, seed: int, side: float, noise: float
) -> Iterator[Tensor]:
    """Compute how much is left of each pixel, (n <= 64, H, W) float32: 1 all, 0 nothing."""
    height, width = one.shape
    edge = max(1, round(side * min(height, width)))
    for start in range(0, samples, BLOCK):
        count, draws = min(BLOCK, samples - start), stream(seed, start // BLOCK)
        if perturbation == "noise":
            yield noise * torch.randn(BLOCK, height, width, generator=draws)[:count]
            continue
        top, left = (torch.randint(size - edge + 1, (BLOCK,), generator=draws)[:count] for size in (height, width))
        rows, columns = (_mark_covered(size, first, edge) for size, first in ((height, top), (width, left)))
        yield 1 - rows[:, :, None] * columns[:, None, :]


def _mark_covered(size: int, first: Tensor, edge: int) -> Tensor:
    """Return 1 at the ``edge`` places from each ``first`` (n,) on, else 0: (n, size)."""
    places = torch.arange(size) - first[:, None]
    return ((places >= 0) & (places < edge)).float()
