"""Shapley values of the cells of an image: each cell's fair share of f(x) - f(fill).

Shapley 1953 (doi:10.1515/9781400881970-018); Castro, Gomez & Tejada 2009 (doi:10.1016/j.cor.2008.04.004); Lundberg &
Lee 2017 (arXiv:1705.07874).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from core.attribution.common import complete
from core.attribution.cost import Cost
from core.attribution.method import Query, heatmap_method
from core.attribution.players import BLOCK, Cells, CoalitionGame, GridSide, all_coalitions
from core.attribution.records import Family
from core.attribution.surrogates.shapley_values import (
    draw_pairs,
    exact,
    kernel_error,
    kernel_regression,
    kernel_weights,
    marginals,
    prefixes,
)
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.network.device import stream
from core.network.masked import Chunk, Fill, Output
from core.types import Explanation

MOST_PLAYERS = 16
"""2^16 forward passes per image take minutes to hours; each further cell doubles them."""


def _every_coalition(settings: Mapping[str, Any], _: Classifier) -> Cost:
    return Cost(forwards=2 ** (settings["grid"] ** 2))


def _some_coalitions(settings: Mapping[str, Any], _: Classifier) -> Cost:
    return Cost(forwards=min(settings["samples"], 2 ** (settings["grid"] ** 2)))


def _sampled_orders(settings: Mapping[str, Any], _: Classifier) -> Cost:
    return Cost(forwards=2 * settings["pairs"] * (settings["grid"] ** 2 - 1))


@heatmap_method(family=Family.SURROGATES, cost=_every_coalition)
def shapley_exact(
    query: Query, *, grid: int = 3, fill: Fill = "mean", output: Output = "logit", chunk: Chunk = 0
) -> Explanation:
    """Compute exact Shapley values of the ``grid`` x ``grid`` cells of an image, from all 2^n coalitions of cells.

    Shapley 1953 (doi:10.1515/9781400881970-018): what a cell adds to the target's output, averaged over all orders in
    which cells may be uncovered; cells that are absent show the fill. A cell's value is shared out equally to its
    pixels, so the heatmap sums to f(x) - f(fill).

    Parameters
    ----------
    grid
        Cells per side of the grid that the image is divided into: 2 to 4, where 4 costs 65,536 forward passes an image.
    """
    if grid**2 > MOST_PLAYERS:
        raise ForetellError(f"grid={grid}: exact Shapley values take at most 4 cells a side; use 'shapley_sampling'.")
    game = _game(query, grid, fill, output, chunk)
    coalitions = all_coalitions(game.cells.players)
    values = game.evaluate_coalitions(coalitions, query.progress)
    parameters = {"grid": grid, "fill": fill, "output": output}
    return _build_explanation(query, game, exact(values), None, {"parameters": parameters})


@heatmap_method(family=Family.SURROGATES, cost=_sampled_orders)
def shapley_sampling(
    query: Query,
    *,
    grid: GridSide = 7,
    pairs: int = 16,
    fill: Fill = "mean",
    output: Output = "logit",
    chunk: Chunk = 0,
) -> Explanation:
    """Estimate Shapley values of an image's cells by averaging over random orders in which the cells are uncovered.

    Castro, Gomez & Tejada 2009 (doi:10.1016/j.cor.2008.04.004). Orders come in pairs of one and its reverse, which
    takes out much of the noise (Mitchell et al. 2022, arXiv:2104.12199). Each order's gains add up to f(x) - f(fill),
    so the heatmap does, whatever the noise. `Explanation.error` is the standard error over the pairs.

    Parameters
    ----------
    pairs
        Number of random orders, each taken with its reverse; a pair costs 2 (grid^2 - 1) forward passes.
    """
    if pairs < 2:
        raise ForetellError(f"pairs={pairs}: Shapley sampling needs at least 2 pairs of orders.")
    game = _game(query, grid, fill, output, chunk)
    seed = query.seed
    samples_by_image = []
    for one, values in zip(_orders(game, pairs, seed), game.values(_ways(game, pairs, seed)), strict=True):
        there, back = values.chunk(2, 1)
        gains = marginals(one, there, game.empty, game.full) + marginals(one.flip(0), back, game.empty, game.full)
        samples_by_image.append(gains / 2)
        query.progress(len(samples_by_image), pairs, "orders")
    gains = torch.stack(samples_by_image)
    error = gains.std(0) / pairs**0.5
    parameters = {"grid": grid, "pairs": pairs, "fill": fill, "output": output}
    facts = {"samples": 2 * pairs, "seed": seed, "parameters": parameters}
    return _build_explanation(query, game, gains.mean(0), error, facts)


@heatmap_method(family=Family.SURROGATES, cost=_some_coalitions)
def kernel_shap(
    query: Query,
    *,
    grid: GridSide = 7,
    samples: int = 2048,
    fill: Fill = "mean",
    output: Output = "logit",
    chunk: Chunk = 0,
) -> Explanation:
    """Estimate Shapley values of an image's cells by weighted regression of the output on random coalitions.

    Lundberg & Lee 2017 (arXiv:1705.07874), theorem 2. The efficiency constraint is eliminated, so the heatmap sums to
    f(x) - f(fill). Where ``samples`` reach all 2^n - 2 coalitions, they are all taken once with the kernel's
    weights. Else coalitions are drawn by the kernel, each with its complement (Covert & Lee 2021, arXiv:2012.01536),
    and `Explanation.error` is the standard error.

    Parameters
    ----------
    samples
        Number of sets of cells that are shown, a forward pass each; if there are no more sets than that, the result is
        exact.
    """
    game = _game(query, grid, fill, output, chunk)
    players = game.cells.players
    complete = 2**players - 2 <= samples
    parameters = {"grid": grid, "samples": samples, "fill": fill, "output": output}
    if complete:
        coalitions = all_coalitions(players)[1:-1]
        values = game.evaluate_coalitions(coalitions, query.progress)
        shares = kernel_regression(coalitions, values, kernel_weights(coalitions), game.empty, game.full)
        return _build_explanation(query, game, shares, None, {"parameters": parameters})
    if samples < 4 * players:
        raise ForetellError(f"samples={samples}: {players} cells need at least {4 * players} coalitions.")
    coalitions = _draw_pair_blocks(players, samples // 2, query.seed)
    values = game.evaluate_coalitions(coalitions, query.progress)
    weights = torch.ones(len(coalitions), dtype=torch.float64)
    shares = kernel_regression(coalitions, values, weights, game.empty, game.full)
    error = kernel_error(coalitions, values, shares, game.empty)
    facts = {"samples": len(coalitions), "seed": query.seed, "parameters": parameters}
    return _build_explanation(query, game, shares, error, facts)


def _game(query: Query, grid: int, fill: Fill, output: Output, chunk: int) -> CoalitionGame:
    cells = Cells(*query.classifier.input_shape[1:], grid)
    return CoalitionGame(
        query.classifier, query.inputs, query.classes, cells, query.classifier.fill(fill), output, chunk
    )


def _orders(game: CoalitionGame, pairs: int, seed: int) -> Iterator[Tensor]:
    """Return random orders of the players, each from its own stream."""
    for pair in range(pairs):
        yield torch.randperm(game.cells.players, generator=stream(seed, pair))


def _ways(game: CoalitionGame, pairs: int, seed: int) -> Iterator[Tensor]:
    """Return the coalitions of each order and of its reverse, (2 (n - 1), n)."""
    for one in _orders(game, pairs, seed):
        yield torch.cat([prefixes(one), prefixes(one.flip(0))])


def _draw_pair_blocks(players: int, pairs: int, seed: int) -> Tensor:
    """Draw ``pairs`` pairs of coalitions, in fixed blocks each from its own stream."""
    half = BLOCK // 2
    blocks = [draw_pairs(players, half, stream(seed, block)) for block in range(-(-pairs // half))]
    return torch.cat(blocks)[: 2 * pairs]


def _build_explanation(
    query: Query, game: CoalitionGame, shares: Tensor, error: Tensor | None, facts: dict[str, Any]
) -> Explanation:
    """Spread shares (B, players) over the pixels; the residual of their sum is each certificate's completeness."""
    maps = game.cells.spread(shares).float()
    known = complete(maps, game.full - game.empty, "Use another grid or fill.")
    return query.explain(maps, known, error=None if error is None else game.cells.spread(error).float(), **facts)
