"""How far heatmaps agree: Spearman's rank correlation of the evidence's size at each pixel.

Methods have different units, and only some have a sign, so what is compared is which pixels matter more than which:
the ranks of the distance from no evidence. Krishna et al. 2022 (arXiv:2202.01602) compare methods by rank correlation;
Adebayo et al. 2018 (arXiv:1810.03292) networks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.types import Explanation

Ranks = NDArray[np.float64]


def rank_pixels(explanation: Explanation) -> Ranks:
    """Rank the pixels of each heatmap by the size of the evidence, ties by their mean rank: (B, H * W)."""
    from scipy.stats import rankdata  # later: it takes half a second, for which a first heatmap need not wait

    sizes = explanation.evidence.double().abs().flatten(1).numpy()
    ranks: Ranks = rankdata(sizes, axis=1)
    return ranks


def correlate_ranks(one: Ranks, other: Ranks) -> NDArray[np.float64]:
    """Compute Spearman's rank correlation (B,) of the rows of two arrays of `rank_pixels`.

    A heatmap of one value correlates with nothing: 0.
    """
    a, b = (ranks - ranks.mean(1, keepdims=True) for ranks in (one, other))
    length = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    correlations: NDArray[np.float64] = np.divide((a * b).sum(1), length, out=np.zeros(len(a)), where=length > 0)
    return correlations


def correlate_all(explanations: Sequence[Explanation]) -> NDArray[np.float64]:
    """Compute the rank correlation (M, M) of every two of M heatmaps of one image, as `correlate_ranks`."""
    ranks = np.concatenate([rank_pixels(one) for one in explanations])
    centred = ranks - ranks.mean(1, keepdims=True)
    lengths = np.sqrt((centred**2).sum(1, keepdims=True))
    unit = np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 0)
    correlations: NDArray[np.float64] = (unit @ unit.T).clip(-1.0, 1.0)
    return correlations


def order_by_similarity(correlations: NDArray[np.float64]) -> list[int]:
    """Order rows of correlations (M, M) so that neighbours are similar.

    Average linkage of 1 - correlation, with the leaves in the order of the shortest path through them (Bar-Joseph,
    Gifford & Jaakkola, 2001, doi:10.1093/bioinformatics/17.suppl_1.S22). A missing correlation counts as 0.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(correlations) < 3:
        return list(range(len(correlations)))
    distances = 1.0 - np.nan_to_num(correlations)
    np.fill_diagonal(distances, 0.0)
    tree = linkage(squareform(distances, checks=False), "average", optimal_ordering=True)
    return [int(k) for k in leaves_list(tree)]
