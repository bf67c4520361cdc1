"""Marked places against chance: how much more often they are right than the same marks on other images.

Chance is by permutation of images (`study.places.chance`), so that participants who mark the middle of every image, and
regions that lie there, are taken into account. Estimates are means over all responses of a condition; their variance is
that of a ratio over participants (`study.analysis.responses.accuracies`), with Student's t for the interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from study import plots
from study.analysis.exploratory.analysis import ExploratoryAnalysis, with_figure
from study.analysis.responses import accuracies
from study.analysis.responses.places import CHANCE
from study.conditions import format_condition

RIGHT, BY_CHANCE, ABOVE = "Correct marks", "By chance", "Above chance"
COLUMNS = ["condition", "measure", "participants", "responses", "estimate", "low", "high"]


class Estimate(NamedTuple):
    """A mean over responses with its interval over participants; no interval of one participant."""

    participants: int
    responses: int
    mean: float
    low: float
    high: float


def estimate(values: pd.Series[float], participants: pd.Series[str], level: float = 0.95) -> Estimate:
    """Estimate a mean over responses, with an interval over participants; missing values are left out."""
    known = values.notna()
    if not known.any():
        return Estimate(0, 0, np.nan, np.nan, np.nan)
    groups = values[known].groupby(participants[known], sort=False)
    sums, counts = (made.to_numpy(np.float64)[:, None] for made in (groups.sum(), groups.size()))
    mean, low, high = (float(one[0]) for one in accuracies.compute_mean_intervals(sums, counts, level))
    return Estimate(len(counts), int(known.sum()), mean, low, high)


def tabulate(frame: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Tabulate each measure of the marks by condition.

    Parameters
    ----------
    frame
        One row per response: participant, condition, correct, chance, and the scores that the task has.

    Returns
    -------
    pandas.DataFrame
        condition, measure, participants, `responses`, estimate, low, high.
    """
    rows = [
        (name, measure, *estimate(values, own["participant"], level))
        for name in accuracies.order(frame)
        for own in [frame[frame["condition"] == name]]
        for measure, values in _list_measures(own)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


SCORES: Mapping[str, str] = {
    "distance": "Distance to the region (image widths)",
    "peak_distance": "Distance to the peak (image widths)",
    "object_hit": "Marks on the object",
    "pointing": "Share of the brush in the region",
    "iou": "Intersection over union",
    "permuted_iou": "Intersection over union, by chance",
    "rank_correlation": "Rank correlation with the evidence",
}


def _list_measures(own: pd.DataFrame) -> Iterator[tuple[str, pd.Series[float]]]:
    yield RIGHT, own["correct"].astype(np.float64)
    yield BY_CHANCE, own[CHANCE]
    yield ABOVE, own["correct"] - own[CHANCE]
    for name, words in SCORES.items():
        if name in own:
            yield words, own[name]


def describe(table: pd.DataFrame) -> str:
    """Say for each condition how often marks are correct, by chance, and whether the difference is clear."""
    said = []
    for name, rows in table.groupby("condition", sort=False):
        by = rows.set_index("measure")
        above = by.loc[ABOVE]
        said.append(
            f"{format_condition(str(name))}: {by.loc[RIGHT, 'estimate']:.0%} of the marks are correct, and "
            f"{by.loc[BY_CHANCE, 'estimate']:.0%} would be by chance: {100 * above['estimate']:+.0f} percentage points "
            f"[{100 * above['low']:.0f}, {100 * above['high']:.0f}]."
        )
    return " ".join(said)


def figure(table: pd.DataFrame) -> go.Figure:
    """Plot correct marks and chance by condition, from `tabulate`."""
    shown = table[table["measure"].isin([RIGHT, BY_CHANCE])]
    return plots.intervals(shown, x="condition", y="estimate", by="measure", title="Correct marks", percent=True)


ANALYSIS = ExploratoryAnalysis(
    "Marked places against chance",
    "Chance is what the same marks score on the regions of the other images, averaged over all of them: it takes into "
    "account that marks and regions lie near the middle. Above chance is the difference, in 95% intervals over "
    "participants. Distances are in widths of the image; the rank correlation is Spearman's, over all cells.",
    lambda study: with_figure(tabulate(study.data.every), figure),
    needs=lambda study: study.data.task.place is not None and CHANCE in study.frame,
    conclude=lambda _, table: describe(table),
)
