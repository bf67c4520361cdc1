"""LIME: a linear model of the cells of one image, valid near that image.

Ribeiro, Singh & Guestrin 2016 (arXiv:1602.04938).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from core.attribution.cost import forwards
from core.attribution.method import Query, heatmap_method
from core.attribution.players import BLOCK, Cells, CoalitionGame, GridSide
from core.attribution.records import Family
from core.errors import ForetellError
from core.network.device import stream
from core.network.masked import Chunk, Fill, Output
from core.types import Explanation

FAITHFUL = 0.5
"""A local model that explains less than half the weighted variance does not describe the network there."""


@heatmap_method(family=Family.SURROGATES, cost=forwards("samples"))
def lime(
    query: Query,
    *,
    grid: GridSide = 7,
    samples: int = 1000,
    kernel_width: float = 0.25,
    ridge: float = 1.0,
    fill: Fill = "mean",
    output: Output = "probability",
    chunk: Chunk = 0,
) -> Explanation:
    """Fit a linear model of the target's output on which cells are visible, near the whole image; heatmap its weights.

    Ribeiro et al. 2016 (arXiv:1602.04938), eq. 1 and 2, with ridge regression in place of K-Lasso and the cells of a
    grid in place of superpixels: each of ``samples`` images shows each cell with probability 1/2 and counts by
    exp(-D^2 / kernel_width^2), D the cosine distance to the whole image, 1 - sqrt(share of the cells shown). The
    intercept is not penalised. A cell's weight is shared out equally to its pixels. The certificate's parameters hold
    the local model's ``r2``; a low one is a warning. `Explanation.error` is the standard error over the samples.

    Parameters
    ----------
    samples
        Number of images with some of the cells masked, a forward pass each.
    kernel_width
        Width of the kernel by which a sample counts less, the more of the image is masked: the smaller, the more local
        the model.
    ridge
        Penalty on the squared weights of the cells; 0 for none.
    """
    if kernel_width <= 0 or ridge < 0:
        raise ForetellError(f"kernel_width={kernel_width}, ridge={ridge}: give a positive width, a ridge of 0 or more.")
    classifier, seed = query.classifier, query.seed
    cells = Cells(*classifier.input_shape[1:], grid)
    if samples < 2 * cells.players:
        raise ForetellError(f"samples={samples}: {cells.players} cells need at least {2 * cells.players} samples.")
    game = CoalitionGame(classifier, query.inputs, query.classes, cells, classifier.fill(fill), output, chunk)
    shown = torch.cat(list(coalitions(cells.players, samples, seed)))
    values = game.evaluate_coalitions(shown, query.progress)
    slopes, errors, r2 = local_model(shown, values, proximity(shown, kernel_width), ridge)
    parameters = {"grid": grid, "kernel_width": kernel_width, "ridge": ridge, "fill": fill, "output": output}
    known = [_fit(r, parameters) for r in r2.tolist()]
    maps, error = cells.spread(slopes), cells.spread(errors).float()
    return query.explain(maps, known, error=error, samples=samples, seed=seed)


def coalitions(players: int, samples: int, seed: int) -> Iterator[Tensor]:
    """Draw coalitions in blocks (n <= 64, players) bool, each from its own stream: each player is in by a coin."""
    for block, start in enumerate(range(0, samples, BLOCK)):
        coins = torch.rand(BLOCK, players, generator=stream(seed, block))
        yield (coins < 0.5)[: samples - start]


def proximity(shown: Tensor, width: float) -> Tensor:
    """Return pi_x of coalitions (m, n), section 3.3: exp(-D^2 / width^2), D their cosine distance to all ones; (m,)."""
    distance = 1 - shown.double().mean(1).sqrt()
    return torch.exp(-((distance / width) ** 2))


def local_model(shown: Tensor, values: Tensor, weights: Tensor, ridge: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the weighted ridge regression of values (B, m) on coalitions (m, n), the intercept free.

    Returns
    -------
    slopes, errors, r2
        (B, n) coefficients, their (B, n) standard errors (sandwich; White 1980, doi:10.2307/1912934), and the weighted
        share (B,) of the variance they explain.
    """
    share = weights / weights.sum()
    x = shown.double() - share @ shown.double()
    y = values - (values @ share)[:, None]
    weighted = weights[:, None] * x
    inverse = torch.linalg.inv(weighted.T @ x + ridge * torch.eye(x.shape[1], dtype=torch.float64))
    slopes = y @ weighted @ inverse
    residual = y - slopes @ x.T
    influence = weighted @ inverse
    count, cells = x.shape
    errors = (residual.square() @ influence.square() * count / (count - cells)).sqrt()
    variance = (y.square() @ weights).clamp(min=torch.finfo(torch.float64).tiny)
    return slopes, errors, 1 - residual.square() @ weights / variance


def _fit(r2: float, parameters: dict[str, Any]) -> dict[str, Any]:
    warnings: tuple[str, ...] = ()
    if not r2 >= FAITHFUL:
        warnings = (
            f"The linear model explains {r2:.0%} of what the classifier does near this image: do not read the heatmap "
            "as its reasons. Try fewer cells, output='logit' or more samples.",
        )
    return {"parameters": parameters | {"r2": r2}, "warnings": warnings}
