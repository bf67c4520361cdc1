"""Differences in accuracy from the draws of a posterior: those that the planned contrasts estimate.

Each draw gives each cell of the design its accuracy, averaged over normal random effects with the draw's own variances,
as `study.analysis.models.marginal` does with the estimates. Where a cell has only correct or only incorrect responses
the likelihood alone has no maximum, and the priors keep the posterior proper: the interval is then as wide as they are
vague (Gelman, Jakulin, Pittau & Su, 2008, doi:10.1214/08-AOAS191).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import ndtr

from study.analysis.bayes.posterior import HIGH, LOW, Posterior
from study.analysis.models import estimability
from study.analysis.models import formula as formulas
from study.analysis.models.marginal import average_probability
from study.analysis.models.records import Floats
from study.analysis.planned.contrasts import FACTORS, Cells, Contrast, place_cells
from study.plan.equivalence import Bounds

BATCH = 2_000
"""Values that are averaged over the random effects at once."""


def predict(posterior: Posterior, cells: pd.DataFrame, formula: str) -> Floats:
    """Return (draws, k) probabilities of k rows, averaged over the random effects; missing where no row decides them.

    Of a Gaussian model the means of the response, in which random effects average out.

    Parameters
    ----------
    cells, formula
        As of `study.analysis.models.formula.prepare_formula`.
    """
    model, text, (flat, covariances) = posterior.design.model, formula, posterior.draws.flatten()
    weights = model.design_with_dropped(cells, text)
    eta = flat @ weights[:, : flat.shape[1]].T + formulas.offset(cells, text)
    if model.family == "gaussian":
        return np.where(estimability.has_value(weights, model), eta, np.nan)
    columns, variance = formulas.slopes(model.recode(cells), text), np.zeros_like(eta)
    for block, covariance in zip(model.blocks, covariances, strict=True):
        z = np.column_stack([columns[term] for term in block.terms])
        variance += np.einsum("ki,dij,kj->dk", z, covariance, z)
    chance = ndtr(eta / np.sqrt(1 + variance)) if model.link == "probit" else _average(eta, variance)
    return np.where(estimability.has_value(weights, model), chance, np.nan)


def _average(eta: Floats, variance: Floats) -> Floats:
    flat, spread = eta.ravel(), variance.ravel()
    parts = range(0, len(flat), BATCH)
    return np.concatenate([average_probability(flat[k : k + BATCH], spread[k : k + BATCH])[0] for k in parts]).reshape(
        eta.shape
    )


def tabulate(
    posterior: Posterior,
    contrasts: Sequence[Contrast],
    bounds: Bounds | None = None,
    cells: Cells = FACTORS,
) -> pd.DataFrame:
    """Tabulate each contrast of conditions, averaged over its trial types.

    Returns
    -------
    pandas.DataFrame
        contrast, accuracy_less, accuracy_more (posterior means), and the columns of `summarise`.
    """
    more, less = _draw_sides(posterior, contrasts, cells)
    accuracies = {"accuracy_less": less.mean(axis=0), "accuracy_more": more.mean(axis=0)}
    table = pd.DataFrame({"contrast": [one.name for one in contrasts], **accuracies})
    return table.join(summarise(100 * (more - less), bounds))


def draw_points(posterior: Posterior, contrasts: Sequence[Contrast], cells: Cells = FACTORS) -> Floats:
    """Return (draws, m) differences of m contrasts, in percentage points."""
    more, less = _draw_sides(posterior, contrasts, cells)
    return np.asarray(100 * (more - less), dtype=np.float64)


def _draw_sides(posterior: Posterior, contrasts: Sequence[Contrast], cells: Cells) -> tuple[Floats, Floats]:
    """Return (draws, m) accuracies of both conditions of each contrast."""
    frame, sides = place_cells(posterior.design.model, contrasts, cells)
    chance = predict(posterior, *formulas.prepare_formula(frame, posterior.design.model.formula))
    more, less = (np.column_stack([chance[:, side[k]].mean(axis=1) for side in sides]) for k in (0, 1))
    return more, less


def summarise(points: Floats, bounds: Bounds | None = None) -> pd.DataFrame:
    """Summarise draws (d, m) of differences in percentage points.

    Returns
    -------
    pandas.DataFrame
        points (posterior mean), points_low, points_high (equal-tailed 95%), p_above (probability of a difference above
        0), and with bounds p_within (of one between them). Missing where no row decides a difference.
    """
    low, high = np.quantile(points, (LOW, HIGH), axis=0)
    known = ~np.isnan(points).any(axis=0)
    made = {"points": points.mean(axis=0), "points_low": low, "points_high": high}
    made["p_above"] = np.where(known, np.mean(points > 0, axis=0), np.nan)
    if bounds is not None:
        within = (bounds[0] < points) & (points < bounds[1])
        made["p_within"] = np.where(known, np.mean(within, axis=0), np.nan)
    return pd.DataFrame(made)
