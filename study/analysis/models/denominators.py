"""Denominator degrees of freedom: how many independent levels the error of an effect comes from.

The variance of an estimate is a sum: sampling error, and a part from each random term (participants' intercepts,
categories' slopes of an explanation, ...). A part that comes from 10 categories is itself estimated from 10 categories,
so the statistic has longer tails than the normal distribution. Each part has the degrees of freedom of containment, the
random term's contribution to the rank of [X Z] (``ddfm=contain`` of SAS), and their sum those of Satterthwaite (1946,
doi:10.2307/3002019): nu = (sum V_k)^2 / sum(V_k^2 / nu_k). Several effects together have those of Fai & Cornelius
(1996, doi:10.1080/00949659608811740), as in lmerTest. Models planned with random intercepts only keep the normal and
chi-square distributions, as in the paper.

Maximum likelihood also estimates these variances as if the fixed effects were known: too small by nu / m where m levels
have nu degrees of freedom, which restricted maximum likelihood (REML; Patterson & Thompson, 1971,
doi:10.1093/biomet/58.3.545) takes account of. `compute_scale` is by how much it would enlarge the error of an F test.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from study.analysis.models.laplace import Block, Laplace, Point
from study.analysis.models.records import Floats, MixedModel, VariancePart

TOLERANCE = 1e-8
"""Relative size below which a singular value is 0."""


def split_variance(likelihood: Laplace, point: Point) -> tuple[VariancePart, ...]:
    """Split the coefficients' covariance, given the variances, into sampling error and a part of each random term.

    Rows without responses count for nothing.
    """
    weight = likelihood.weight(point.eta)
    precise = _apply_precision(likelihood, point, weight)
    spread = np.linalg.pinv(likelihood.design.T @ precise, rcond=TOLERANCE, hermitian=True)
    linear = precise @ spread  # (n, p): the estimates are linear in the responses, with these weights
    scaled = np.divide(linear, np.sqrt(weight)[:, None], where=weight[:, None] > 0, out=np.zeros_like(linear))
    rows = likelihood.responses > 0
    design = likelihood.design[rows]
    parts = [VariancePart(scaled.T @ scaled, float(max(1, len(design) - design.shape[1])))]
    effects = np.column_stack([likelihood.layout.collect(point.values, column) for column in linear.T])
    start = 0
    for block in likelihood.blocks:
        own = effects[start : start + block.size]
        parts.append(make_part(own.T @ own, design, _select(block, rows)))
        start += block.size
    return tuple(parts)


def make_part(covariance: Floats, design: Floats, block: Block) -> VariancePart:
    """Make the part (p, p) of one random term, with what the term is in this design (n, p)."""
    rank, spanned = _find_spanned(design, block)
    return VariancePart(covariance, _count_df(rank, spanned, block), len(block.levels), spanned)


def _select(block: Block, rows: NDArray[np.bool_]) -> Block:
    """Return a random term of some of the rows, with the levels that those have."""
    if rows.all():
        return block
    kept, codes = np.unique(block.codes[rows], return_inverse=True)
    return Block(codes, block.values[rows], [block.levels[k] for k in kept])


def compute_df(parts: Sequence[VariancePart], combinations: Floats) -> Floats:
    """Compute the degrees of freedom (k,) of combinations (k, p) of the coefficients; infinite without parts."""
    if not parts:
        return np.full(len(combinations), np.inf)
    each = np.array([np.einsum("ki,ij,kj->k", combinations, part.covariance, combinations) for part in parts])
    counts = np.array([part.df for part in parts])
    imprecision = np.sum(each**2 / counts[:, None], axis=0)
    infinite = np.full(len(combinations), np.inf)
    return np.asarray(np.divide(each.sum(axis=0) ** 2, imprecision, where=imprecision > 0, out=infinite))


def find_df(model: MixedModel, combinations: Floats) -> Floats:
    """Find the degrees of freedom (k,) of the t of combinations (k, p) of a model's coefficients.

    Infinite (z) of models with random intercepts only; of linear models the fewest of any coefficient, to be careful.
    """
    known = [] if model.parts else [c.df for c in model.coefficients if c.df is not None]
    return np.full(len(combinations), min(known)) if known else compute_df(model.parts, combinations)


def pool_df(parts: Sequence[VariancePart], combinations: Floats) -> float:
    """Compute the degrees of freedom of an F test that all combinations (k, p) are 0; infinite without parts.

    Where an effect has 2 or fewer, its F distribution has no mean to match: then the fewest, and at least 1.
    """
    if not parts or not len(combinations):
        return float("inf")
    total = np.sum([part.covariance for part in parts], axis=0)
    _, vectors = np.linalg.eigh(combinations @ total @ combinations.T)
    each = compute_df(parts, vectors.T @ combinations)
    if len(each) == 1:
        return float(each[0])
    large = each[each > 2]
    expected = float(np.sum(np.where(np.isfinite(large), large / (large - 2), 1.0)))
    if len(large) < len(each):
        return float(max(1.0, each.min()))
    return float(2 * expected / (expected - len(each))) if expected > len(each) else float("inf")


def compute_scale(parts: Sequence[VariancePart], combinations: Floats) -> float:
    """Compute by how much REML would enlarge the error of an F test that all combinations (k, p) are 0.

    Averaged over the combinations; 1 without parts. Where the levels of a term span an effect, their spread has
    sampling error too, so that its estimate from m levels with nu degrees of freedom is too small as a whole.
    """
    if not parts or not len(combinations):
        return 1.0
    first, *others = [combinations @ part.covariance @ combinations.T for part in parts]
    precision = np.linalg.pinv(np.sum([first, *others], axis=0), rcond=TOLERANCE, hermitian=True)
    scale = 1.0
    for part, own in zip(parts[1:], others, strict=True):
        spanned = _orthogonalise(combinations @ part.spanned) if part.spanned.size else part.spanned
        if not spanned.size or part.levels is None:
            continue
        inner = np.linalg.pinv(spanned.T @ precision @ spanned, rcond=TOLERANCE, hermitian=True)
        onto = spanned @ inner @ spanned.T @ precision
        spread = np.trace(precision @ (own + onto @ first @ onto.T)) / len(combinations)
        scale += float(spread) * max(0.0, part.levels / part.df - 1)
    return scale


def count_df(design: Floats, block: Block) -> float:
    """Count the degrees of freedom of a random term: what it adds to the rank of the design, for each of its columns.

    At least 1, also where the fixed effects take up every level.
    """
    return _count_df(*_find_spanned(design, block), block)


def _count_df(rank: int, spanned: Floats, block: Block) -> float:
    return float(max(1.0, (rank - spanned.shape[1]) / block.width))


def _find_spanned(design: Floats, block: Block) -> tuple[int, Floats]:
    """Return the rank of a random term, and the directions (p, g) of the coefficients that its columns span."""
    left, rank = design.copy(), 0
    for level in range(len(block.levels)):
        rows = block.codes == level
        basis = _orthogonalise(block.values[rows])
        left[rows] -= basis @ (basis.T @ design[rows])
        rank += basis.shape[1]
    _, sizes, directions = np.linalg.svd(left, full_matrices=len(left) < left.shape[1])
    kept = int((sizes > TOLERANCE * np.linalg.norm(design)).sum())
    return rank, directions[kept:].T


def _orthogonalise(columns: Floats) -> Floats:
    vectors, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(vectors[:, values > TOLERANCE * max(1.0, values[0])])


def _apply_precision(likelihood: Laplace, point: Point, weight: Floats) -> Floats:
    """Return (n, p) V^-1 X, with V = W^-1 + Z T T'Z' and V^-1 = W - W Z T H^-1 T'Z'W."""
    weighted = likelihood.design * weight[:, None]
    layout, values = likelihood.layout, point.values
    inner = [layout.spread_out(values, point.curvature.solve(layout.collect(values, column))) for column in weighted.T]
    return np.asarray(weighted - weight[:, None] * np.column_stack(inner))
