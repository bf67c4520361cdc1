"""The best observer of the bars, who knows how often each colour and each shape goes with each class."""

from __future__ import annotations

import numpy as np

from data.bars.generator import ASPECT, SPREAD


def best_observer(red_horizontal: int, red_vertical: int) -> dict[str, float]:
    """Compute the effects of red against green on the probability of "horizontal", for shares of red in percent.

    The log odds are those of the colour plus the shape's, which are normal with mean d^2 / 2 of their own class and
    variance d^2, d = 2 `ASPECT` / `SPREAD`.
    """
    d, (nodes, weights) = 2 * ASPECT / SPREAD, np.polynomial.hermite_e.hermegauss(80)
    shares = np.array([[red_horizontal, red_vertical], [100 - red_horizontal, 100 - red_vertical]]) / 100
    colour = np.log(shares[:, 0] / shares[:, 1])
    log_odds = np.array([[own * d * d / 2 + d * nodes + c for own in (1, -1)] for c in colour])
    predicted = (1 / (1 + np.exp(-log_odds))) @ weights / weights.sum()
    seen = (shares * predicted).sum(1) / shares.sum(1)
    return {"best_causal": float(np.subtract(*predicted.mean(1))), "best_observed": float(seen[0] - seen[1])}
