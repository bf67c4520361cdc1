"""Sobol attribution: the share of the output's variance that goes with one part of the image, interactions included.

Fel, Cadene, Chalvidal, Cord, Vigouroux & Serre 2021 (arXiv:2111.04138).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from scipy.stats import qmc
from torch import Tensor
from torch.nn import functional as F

from core.attribution.cost import Cost
from core.attribution.method import Query, heatmap_method
from core.attribution.players import GridSide
from core.attribution.records import Family
from core.attribution.signs import Sign
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.masked import Chunk, Fill, Output, iterate_masked_scores
from core.teaching.masks import BLOCK
from core.types import Explanation

DIMMED = Sign("how much dimming this place changes the score of {}, in either direction", None, "_influence")

CONSTANT = "The output is the same under every mask, so no part of the image has a share of its variance: all are 0."


ROUNDING = 1e-6
"""Standard deviation, relative to the largest output, below which outputs in float32 count as the same."""


def _evaluate_designs(settings: Mapping[str, Any], _: Classifier) -> Cost:
    return Cost(forwards=settings["designs"] * (settings["grid"] ** 2 + 2))


@heatmap_method(family=Family.PERTURBATION, sign=DIMMED, cost=_evaluate_designs)
def sobol(
    query: Query,
    *,
    designs: int = 32,
    grid: GridSide = 8,
    fill: Fill = "mean",
    output: Output = "logit",
    chunk: Chunk = 0,
) -> Explanation:
    """Estimate each cell's total Sobol index: the share of the variance that is lost when this cell alone is fixed.

    Fel et al. 2021 (arXiv:2111.04138), eq. 5 by Jansen's estimator (eq. 7). Cells of a ``grid`` x ``grid`` are dimmed
    towards the fill by independent uniform draws. It says how much a place matters, not whether for or against the
    class. `Explanation.error` is the standard error as if rows were independent, which it overstates for such a
    sequence.

    Parameters
    ----------
    designs
        Number of rows of a scrambled Sobol sequence; each costs grid^2 + 2 forward passes.
    """
    if designs < 2 or grid < 1:
        raise ForetellError(f"designs={designs}, grid={grid}: give at least 2 designs and 1 cell a side.")
    classifier, inputs = query.classifier, query.inputs
    rows = draw_designs(designs, grid**2, query.seed)
    size, total, parts = classifier.input_shape[1:], len(rows), []
    for _, scores in iterate_masked_scores(
        classifier, inputs, query.classes, _blocks(rows, grid, size), fill=classifier.fill(fill), output=output,
        chunk=chunk or None,
    ):  # fmt: skip
        parts.append(scores)
        query.progress(sum(part.shape[1] for part in parts), total, "masks")
    shares, errors = total_indices(torch.cat(parts, 1).cpu(), designs)
    warnings = [() if bool(one.any()) else (CONSTANT,) for one in shares]
    maps, noise = (enlarge_cells(one.view(-1, grid, grid), size) for one in (shares, errors))
    known = [{"warnings": each} for each in warnings]
    parameters = {"grid": grid, "fill": fill, "output": output}
    return query.explain(maps, known, error=noise, samples=total, seed=query.seed, parameters=parameters)


def draw_designs(designs: int, cells: int, seed: int) -> Tensor:
    """Draw rows ((cells + 2) designs, cells) in [0, 1]: A, B, then A with each column in turn taken from B."""
    drawn = qmc.Sobol(2 * cells, scramble=True, rng=seed).random_base2(max(designs - 1, 1).bit_length())[:designs]
    a, b = torch.split(torch.from_numpy(drawn).float(), cells, 1)
    mixed = a.expand(cells, -1, -1).clone()
    for cell in range(cells):
        mixed[cell, :, cell] = b[:, cell]
    return torch.cat([a, b, mixed.flatten(0, 1)])


def total_indices(scores: Tensor, designs: int) -> tuple[Tensor, Tensor]:
    """Estimate total indices and their standard errors, both (B, d), of outputs (B, (d + 2) designs) of `draw_designs`.

    Jansen 1999: mean((f(A) - f(A with column i of B))^2) / (2 var f).
    """
    a, b, *mixed = torch.split(scores.double(), designs, 1)
    variance = torch.cat([a, b], 1).var(1, keepdim=True)
    squares = (a[:, None] - torch.stack(mixed, 1)).square() / 2
    varies = variance > (ROUNDING * (1 + a.abs().amax(1, keepdim=True))) ** 2
    scale = torch.where(varies, 1 / variance, torch.zeros_like(variance))
    return squares.mean(2) * scale, squares.std(2) / designs**0.5 * scale


def enlarge_cells(cells: Tensor, size: tuple[int, int]) -> Tensor:
    """Enlarge (n, grid, grid) to (n, H, W): every pixel has the value of its cell."""
    return F.interpolate(cells[:, None], list(size), mode="nearest")[:, 0]


def _blocks(rows: Tensor, grid: int, size: tuple[int, int]) -> Iterator[Tensor]:
    return (enlarge_cells(part.view(-1, grid, grid), size) for part in torch.split(rows, BLOCK))
