"""Shapley values from the values of coalitions: the arithmetic, without images or networks.

Shapley 1953 (doi:10.1515/9781400881970-018); Castro, Gomez & Tejada 2009 (doi:10.1016/j.cor.2008.04.004); Lundberg &
Lee 2017 (arXiv:1705.07874).
"""

from __future__ import annotations

from math import comb

import torch
from torch import Tensor

from core.attribution.players import all_coalitions
from core.errors import ForetellError


def exact(values: Tensor) -> Tensor:
    """Return Shapley values (..., n) of a game given by all its values (..., 2^n), ordered as `all_coalitions`.

    phi_i = sum over S without i of |S|! (n - |S| - 1)! / n! (v(S + i) - v(S)).
    """
    count = values.shape[-1]
    players = count.bit_length() - 1
    sizes = all_coalitions(players).sum(1)
    weight = torch.tensor([1 / (players * comb(players - 1, k)) for k in range(players)], dtype=torch.float64)
    numbers = torch.arange(count)
    shares = []
    for player in range(players):
        without = numbers[(numbers >> player) & 1 == 0]
        gain = values[..., without + 2**player] - values[..., without]
        shares.append((gain.double() * weight[sizes[without]]).sum(-1))
    return torch.stack(shares, -1)


def prefixes(order: Tensor) -> Tensor:
    """List the coalitions from none to all players, both excluded: an order (n,) of the players -> (n - 1, n) bool."""
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order))
    return rank[None] < torch.arange(1, len(order))[:, None]


def marginals(order: Tensor, values: Tensor, empty: Tensor, full: Tensor) -> Tensor:
    """Compute what each player adds when it joins in this order: values (B, n - 1) of `prefixes` -> (B, n).

    The sum is full - empty, whatever the values in between.
    """
    gains = torch.cat([empty[:, None], values, full[:, None]], 1).diff(dim=1)
    ordered = torch.empty_like(gains)
    ordered[:, order] = gains
    return ordered


def size_weights(players: int) -> Tensor:
    """Compute the Shapley kernel's total weight at sizes 1 ... n - 1, not normalised: (n - 1) / (k (n - k))."""
    k = torch.arange(1, players, dtype=torch.float64)
    return (players - 1) / (k * (players - k))


def kernel_weights(coalitions: Tensor) -> Tensor:
    """Return the Shapley kernel pi of coalitions (m, n), neither empty nor full, eq. of theorem 2: (m,) float64."""
    players = coalitions.shape[1]
    total = size_weights(players)
    each = torch.tensor([float(total[k - 1]) / comb(players, k) for k in range(1, players)], dtype=torch.float64)
    return each[coalitions.sum(1) - 1]


def draw_pairs(players: int, pairs: int, generator: torch.Generator) -> Tensor:
    """Draw coalitions by the Shapley kernel, each followed by its complement: (2 pairs, n) bool.

    A complement has the same kernel weight, and pairing takes out the even part of the noise (Covert & Lee 2021,
    arXiv:2012.01536).
    """
    sizes = torch.multinomial(size_weights(players), pairs, replacement=True, generator=generator) + 1
    ranks = torch.rand(pairs, players, generator=generator).argsort(1).argsort(1)
    drawn = ranks < sizes[:, None]
    return torch.stack([drawn, ~drawn], 1).flatten(0, 1)


def kernel_regression(coalitions: Tensor, values: Tensor, weights: Tensor, empty: Tensor, full: Tensor) -> Tensor:
    """Return Shapley values (B, n) as the weighted least squares fit of v(S) ~ v(0) + sum of phi_i in S.

    The constraint sum phi = full - empty is kept exactly by putting the last player's value in terms of the others'.

    Parameters
    ----------
    coalitions, weights
        (m, n) bool and (m,).
    values, empty, full
        (B, m), (B,), (B,), float64.

    Raises
    ------
    ForetellError
        Too few different coalitions to tell the players apart.
    """
    design, response = _eliminate_constraint(coalitions, values, empty, full)
    gram = design.T @ (weights[:, None] * design)
    first = torch.linalg.solve(_definite(gram), design.T @ (weights[:, None] * response.T)).T
    return _with_last(first, full - empty)


def kernel_error(coalitions: Tensor, values: Tensor, phi: Tensor, empty: Tensor) -> Tensor:
    """Return the standard error (B, n) of `kernel_regression` on unweighted `draw_pairs`, clustered by pair.

    The sandwich G^-1 (sum g g^T) G^-1 with g the score of a pair, scaled by pairs / (pairs - players): White 1980
    (doi:10.2307/1912934) with the usual correction for clusters.
    """
    z = coalitions.double()
    design = z[:, :-1] - z[:, -1:]
    residual = values - empty[:, None] - phi @ z.T
    inverse = torch.linalg.inv(_definite(design.T @ design))
    pairs, players = len(z) // 2, z.shape[1]
    spreads = []
    for one in residual:  # One image at a time: the scores are as many as coalitions times players.
        influence = (design * one[:, None]).unflatten(0, (pairs, 2)).sum(1) @ inverse
        spreads.append(torch.cat([influence, -influence.sum(1, keepdim=True)], 1).square().sum(0))
    return (torch.stack(spreads) * pairs / max(1, pairs - players)).sqrt()


def _eliminate_constraint(coalitions: Tensor, values: Tensor, empty: Tensor, full: Tensor) -> tuple[Tensor, Tensor]:
    z = coalitions.double()
    response = values - empty[:, None] - z[:, -1] * (full - empty)[:, None]
    return z[:, :-1] - z[:, -1:], response


def _with_last(first: Tensor, total: Tensor) -> Tensor:
    return torch.cat([first, (total - first.sum(1))[:, None]], 1)


def _definite(gram: Tensor) -> Tensor:
    if torch.linalg.matrix_rank(gram, hermitian=True) < len(gram):
        raise ForetellError(f"Too few coalitions to tell {len(gram) + 1} cells apart: raise 'samples' or lower 'grid'.")
    return gram
