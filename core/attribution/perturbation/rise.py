"""RISE: the classifier's outputs for randomly masked images, attributed to what the masks left visible.

Petsiuk, Das & Saenko 2018 (arXiv:1806.07421).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from core.attribution.cost import forwards
from core.attribution.method import Query, heatmap_method
from core.attribution.records import Family
from core.errors import ForetellError
from core.network.device import CPU, send, stream
from core.network.masked import Chunk, Fill, Output, iterate_masked_scores
from core.teaching.expectation import WeightedMasks
from core.teaching.masks import BLOCK
from core.types import Explanation

RiseEstimator = Literal["centred", "plain"]


@heatmap_method(family=Family.PERTURBATION, cost=forwards("samples"))
def rise(
    query: Query,
    *,
    samples: int = 1000,
    grid: int = 8,
    p: float = 0.5,
    fill: Fill = "mean",
    output: Output = "probability",
    estimator: RiseEstimator = "centred",
    chunk: Chunk = 0,
) -> Explanation:
    """Average random masks, each weighted by the target's output for what it leaves visible.

    Petsiuk et al. 2018 (arXiv:1806.07421), eq. 6: S = sum_i q_i m_i / (N p). A classifier that ignores a pixel
    gives it E[q], not 0, so the heatmap of the paper (``estimator="plain"``) has its zero at the mean output over the
    masks, another for each image (`Explanation.zero`, and the certificate's ``level``). The default,
    ``"centred"``, is S less that level, cov(q, m) / p: its zero is 0, and the noise of the masks themselves, equal for
    every image, is gone. `Explanation.error` is the standard error.

    Parameters
    ----------
    samples
        Number of random masks.
    grid
        Cells per side of a random mask before it is enlarged and shifted.
    p
        Probability that a cell of a mask is visible.
    estimator
        Plain: as in the paper, where the mean output over the masks means no evidence. Centred: less that mean, so that
        0 means no evidence and the noise of the masks themselves is gone.
    """
    if samples < 2:
        raise ForetellError(f"samples={samples}: RISE needs at least 2 masks.")
    classifier, inputs, seed = query.classifier, query.inputs, query.seed
    masks = GridMasks(*classifier.input_shape[1:], grid, p, classifier.device)
    sums = WeightedMasks(len(inputs), masks.height, masks.width, p, masks.device)
    neutral, done = classifier.fill(fill), 0
    for block, predictions in iterate_masked_scores(
        classifier, inputs, query.classes, masks.blocks(samples, seed), fill=neutral, output=output, chunk=chunk or None
    ):
        sums.add(block, predictions)
        done += len(block)
        query.progress(done, samples, "masks")
    maps, errors = estimate(sums, p, estimator)
    levels = (sums.q / sums.count).tolist()
    zero = 0.0 if estimator == "centred" else torch.tensor(levels)
    parameters = {"grid": grid, "p": p, "fill": fill, "output": output, "estimator": estimator}
    known = [{"parameters": parameters | {"level": level}} for level in levels]
    return query.explain(maps, known, zero=zero, error=errors, samples=samples, seed=seed)


def estimate(sums: WeightedMasks, p: float, estimator: RiseEstimator) -> tuple[Tensor, Tensor]:
    """Compute the heatmap and its standard error, both (B, H, W) float64.

    "plain" is mean(q m) / p; "centred" is mean((q - mean q)(m - mean m)) / p. Either is a mean over the masks, and
    its error the standard deviation of the terms, divided by sqrt(N).
    """
    n = sums.count
    if estimator == "plain":
        terms, squares = sums.qm, sums.q2m2
    else:
        q, q2, m, m2 = sums.q[:, None] / n, sums.q2[:, None], sums.m / n, sums.m2
        terms = sums.qm - n * q * m
        # The expansion of sum (q_i - q)^2 (m_i - m)^2.
        squares = sums.q2m2 - 2 * m * sums.q2m + m**2 * q2 - 2 * q * (sums.qm2 - 2 * m * sums.qm + m**2 * n * q)
        squares = squares + q**2 * (m2 - n * m**2)
    spread = (squares - terms**2 / n).clamp(min=0) / (n - 1)
    return (terms / n / p).view(sums.shape).cpu(), ((spread / n).sqrt() / p).view(sums.shape).cpu()


@dataclass(frozen=True)
class GridMasks:
    """Random (grid, grid) images of 0 and 1, blown up bilinearly and shifted at random, section 3.2.

    Each cell is 1 with probability ``p``. With C = ceil(side / grid) they grow to (grid + 1) C px a side and are cut to
    the image at a random offset in [0, C); so every pixel's mean is exactly p.
    """

    height: int
    width: int
    grid: int
    p: float
    device: torch.device = CPU

    def __post_init__(self) -> None:
        if self.grid < 1:
            raise ForetellError(f"grid={self.grid}: RISE masks need at least 1 cell a side.")
        if not 0 < self.p < 1:
            raise ForetellError(f"p={self.p} is out of range: give a probability between 0 and 1.")

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Return ``count`` masks (count, H, W), float32 in [0, 1]."""
        cells = [-(-side // self.grid) for side in (self.height, self.width)]
        coarse = (torch.rand(count, 1, self.grid, self.grid, generator=generator) < self.p).float()
        coarse = send(coarse, self.device)
        fine = F.interpolate(coarse, [(self.grid + 1) * cell for cell in cells], mode="bilinear", align_corners=False)
        fine.clamp_(0, 1)  # Interpolation rounds to 1 + 1e-7.
        tops, lefts = (torch.randint(cell, (count,), generator=generator).tolist() for cell in cells)
        crops = zip(fine[:, 0], tops, lefts, strict=True)
        return torch.stack([one[top : top + self.height, left : left + self.width] for one, top, left in crops])

    def blocks(self, count: int, seed: int) -> Iterator[Tensor]:
        """Return ``count`` masks in blocks (n <= 64, H, W), each from its own stream of ``seed``."""
        for block, start in enumerate(range(0, count, BLOCK)):
            yield self.sample(BLOCK, stream(seed, block))[: count - start]
