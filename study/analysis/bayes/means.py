"""Estimated means of factors and contrasts between them, from the draws of a posterior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from study.analysis.bayes.contrasts import predict, summarise
from study.analysis.bayes.posterior import HIGH, LOW, Posterior
from study.analysis.means.grid import build_grid, find_averaged, label
from study.analysis.means.request import PAIRWISE, MeansRequest, list_contrasts, parse_request
from study.analysis.models.records import Floats
from study.plan.equivalence import Bounds

NOTE = "Accuracies are averaged over the random effects"
LINEAR_NOTE = "Means of the response, where every random effect is 0"
LINEAR = {"points": "estimate", "points_low": "low", "points_high": "high"}
"""Names of the differences of a Gaussian model, which are no percentage points."""


@dataclass(frozen=True)
class PosteriorMeans:
    """Accuracies averaged over the random effects; of a Gaussian model, means of the response.

    Attributes
    ----------
    means
        The factors' levels, accuracy, or mean (of the posterior), low, high (equal-tailed 95%).
    contrasts
        The levels after the bar, contrast, and the columns of `study.analysis.bayes.contrasts.summarise`; of a Gaussian
        model estimate, low and high in place of points.
    unit
        Of the differences.
    notes
        Sentences on what the numbers are.
    """

    request: MeansRequest
    means: pd.DataFrame
    contrasts: pd.DataFrame
    notes: tuple[str, ...]
    unit: str = "percentage points"


def estimate_means(
    frame: pd.DataFrame,
    posterior: Posterior,
    asked: str,
    *,
    contrasts: Sequence[str] = (PAIRWISE,),
    bounds: Bounds | None = None,
) -> PosteriorMeans:
    """Estimate means over the reference grid, as `study.analysis.means.means` does by maximum likelihood.

    Raises
    ------
    ForetellError
        An unknown factor or level; a continuous predictor; weights that do not sum to zero.
    """
    request = parse_request(asked)
    grid = build_grid(frame, posterior.design.model)
    grid.check(request.names)
    cells = grid.combine(request.names)
    wanted = [np.all([grid.cells[name] == value for name, value in cell.items()], axis=0) for cell in cells]
    chance = predict(posterior, grid.cells, grid.formula)
    drawn = np.column_stack([chance[:, rows].mean(axis=1) for rows in wanted])
    low, high = np.quantile(drawn, (LOW, HIGH), axis=0)
    is_linear = posterior.design.model.family == "gaussian"
    name, scaled = ("mean", drawn) if is_linear else ("accuracy", 100 * drawn)
    means = pd.DataFrame(cells).assign(**{name: drawn.mean(axis=0)}, low=low, high=high)
    parts = [_compare(scaled, cells, request, within, contrasts, bounds) for within in grid.combine(request.by)]
    made = pd.concat(parts, ignore_index=True).rename(columns=LINEAR if is_linear else {})
    notes = [f"{LINEAR_NOTE if is_linear else NOTE}; intervals are equal-tailed."]
    if averaged := find_averaged(grid, request):
        notes.append(f"Averaged with equal weights over the levels of {', '.join(averaged)}.")
    if grid.means:
        notes.append(f"Held at the mean: {', '.join(f'{name} = {value:.4g}' for name, value in grid.means.items())}.")
    unit = "in the response's unit" if is_linear else PosteriorMeans.unit
    return PosteriorMeans(request, means, made, tuple(notes), unit)


def _compare(
    drawn: Floats,
    cells: Sequence[dict[str, object]],
    request: MeansRequest,
    within: dict[str, object],
    wanted: Sequence[str],
    bounds: Bounds | None,
) -> pd.DataFrame:
    """Tabulate the contrasts within one combination of the levels after the bar."""
    places = [k for k, cell in enumerate(cells) if all(cell[name] == value for name, value in within.items())]
    names, weights = list_contrasts(wanted, [label({name: cells[k][name] for name in request.factors}) for k in places])
    levels = {name: [value] * len(names) for name, value in within.items()}
    used = weights[:, None, :] != 0
    points = np.where(used, weights[:, None, :] * drawn[None, :, places], 0.0).sum(axis=2).T
    return pd.DataFrame({**levels, "contrast": names}).join(summarise(points, bounds))
