"""HSIC attribution: how strongly the output depends, in any way, on whether a part of the image is visible.

Novello, Fel & Vigouroux 2022 (arXiv:2206.06219).
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.attribution.cost import forwards
from core.attribution.method import Query, heatmap_method
from core.attribution.perturbation.sobol import enlarge_cells
from core.attribution.players import GridSide
from core.attribution.records import Family
from core.attribution.signs import Sign
from core.errors import ForetellError
from core.network.masked import Chunk, Fill, Output, iterate_masked_scores
from core.teaching.masks import BLOCK
from core.types import Explanation

HIDDEN = Sign("hiding this place changes the score of {}, in either direction", None, "_influence")

GROUPS = 20
"""Groups of masks that are left out in turn for the standard error (delete-a-group jackknife)."""
FEWEST = 2 * GROUPS


@heatmap_method(family=Family.PERTURBATION, sign=HIDDEN, cost=forwards("samples"))
def hsic(
    query: Query,
    *,
    samples: int = 768,
    grid: GridSide = 8,
    fill: Fill = "mean",
    output: Output = "logit",
    chunk: Chunk = 0,
) -> Explanation:
    """Estimate how the output depends on each cell's visibility: the Hilbert-Schmidt independence criterion.

    Novello et al. 2022 (arXiv:2206.06219), section 3: cells of a ``grid`` x ``grid`` are visible with probability 1/2;
    the kernels are Dirac's for visibility and Gaussian for the output, its width the median distance. From the paper's
    estimator (eq. 6) what independent masks would give on average is subtracted: 0 means no more than chance, or less.
    It says how much a place matters, not whether for or against the class. `Explanation.error` is a jackknife standard
    error.

    Parameters
    ----------
    samples
        Number of random masks, each a forward pass.
    """
    if samples < FEWEST or grid < 1:
        raise ForetellError(f"samples={samples}, grid={grid}: give at least {FEWEST} samples and 1 cell a side.")
    classifier, size = query.classifier, query.classifier.input_shape[1:]
    drawn = torch.rand(samples, grid, grid, generator=torch.Generator().manual_seed(query.seed))
    visible, parts = (drawn < 0.5).float(), []
    blocks = (enlarge_cells(part, size) for part in torch.split(visible, BLOCK))
    for _, scores in iterate_masked_scores(
        classifier, query.inputs, query.classes, blocks, fill=classifier.fill(fill), output=output, chunk=chunk or None
    ):
        parts.append(scores)
        query.progress(sum(part.shape[1] for part in parts), samples, "masks")
    dependences = [estimate_dependence(visible.flatten(1), one) for one in torch.cat(parts, 1).cpu()]
    maps, noise = (
        enlarge_cells(torch.stack(each).view(-1, grid, grid), size) for each in zip(*dependences, strict=True)
    )
    parameters = {"grid": grid, "fill": fill, "output": output}
    return query.explain(maps.clamp(min=0), error=noise, samples=samples, seed=query.seed, parameters=parameters)


def estimate_dependence(visible: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Estimate the criterion of each cell and its standard error, both (d,): masks (n, d) of 0 and 1, outputs (n,)."""
    z, y = visible.double(), scores.double()
    distances = (y[:, None] - y).abs()
    width = distances[distances > 0].median() if bool(distances.any()) else distances.new_ones(())
    kernel = torch.exp(-(distances**2) / (2 * width**2))
    groups = torch.arange(len(z)) % GROUPS
    without = torch.stack([_dependence(z[groups != g], kernel[groups != g][:, groups != g]) for g in range(GROUPS)])
    spread = (without - without.mean(0)).square().sum(0) * (GROUPS - 1) / GROUPS
    return _dependence(z, kernel), spread.sqrt()


def _dependence(z: Tensor, kernel: Tensor) -> Tensor:
    """Return tr(K H L H) / n^2 of each cell less its mean over independent masks.

    Dirac's kernel is z z' + (1 - z)(1 - z'), and rows of H L H have a sum of 0: the trace is 2 z' H L H z, whose mean
    is tr(H L H) / 2 for independent z of probability 1/2.
    """
    centred = kernel - kernel.mean(0)
    centred = centred - centred.mean(1, keepdim=True)
    dependence: Tensor = (2 * torch.einsum("nd,nm,md->d", z, centred, z) - centred.trace() / 2) / len(z) ** 2
    return dependence
