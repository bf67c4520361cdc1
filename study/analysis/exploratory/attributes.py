"""Attributes that the AI uses: hits, false alarms, and how well participants tell them from others, by condition.

A hit is an attribute that the AI uses and that participants choose, a false alarm one that it does not use. Shares are
of all judgements in a condition, with intervals over participants. Sensitivity d' = z(hits) - z(false alarms) and the
criterion c = -(z(hits) + z(false alarms)) / 2 are those of each participant, averaged; a share of 0 or 1 has none, so
half a judgement is added to both kinds (Hautus, 1995, doi:10.3758/BF03203619).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.stats import norm

from study.analysis.exploratory import groups
from study.analysis.exploratory.analysis import ExploratoryAnalysis, with_figure
from study.analysis.responses import accuracies
from study.analysis.words.cells import write_rounded
from study.conditions import format_condition

SHARES = ("hits", "false_alarms")
MEASURES = ("dprime", "criterion")
CORRECTION = 0.5
"""Judgements added to each kind, and twice as many to their number (Hautus, 1995)."""


def tabulate(frame: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Tabulate the hits, false alarms, d' and criterion of each condition.

    Returns
    -------
    pandas.DataFrame
        condition, participants, hits, hits_low, hits_high, and the same of false_alarms, dprime and criterion.
    """
    judged = code_judgements(frame)
    each = groups.average_each(_measure_each(judged), MEASURES)
    rows = []
    for name, estimates in each.items():
        own = judged[judged["condition"] == name]
        chosen, given = accuracies.count_by_participant(own, "kind", "chosen")
        kinds = [kind for kind in SHARES if kind in given]
        share, low, high = accuracies.compute_intervals(chosen[kinds].to_numpy(), given[kinds].to_numpy(), level)
        row: dict[str, object] = {"condition": name, "participants": own["participant"].nunique()}
        for k, kind in enumerate(kinds):
            row |= {kind: float(share[k]), f"{kind}_low": float(low[k]), f"{kind}_high": float(high[k])}
        rows.append(row | groups.write_row(estimates, level))
    return pd.DataFrame(rows)


def code_judgements(frame: pd.DataFrame) -> pd.DataFrame:
    """Add whether the attribute was ``chosen`` (0/1), and which ``kind`` of choice that would be."""
    used = frame["trial_type"].astype(str) == "used"
    return frame.assign(chosen=(frame["correct"] == used).astype(int), kind=np.where(used, *SHARES))


def _measure_each(judged: pd.DataFrame) -> pd.DataFrame:
    """Measure d' and criterion of each participant in each condition."""
    cells = judged.groupby(["condition", "participant", "kind"])["chosen"].agg(["sum", "size"])
    rate = (cells["sum"] + CORRECTION) / (cells["size"] + 2 * CORRECTION)
    z = pd.Series(norm.ppf(rate), index=rate.index).unstack("kind").reindex(columns=[*SHARES])
    hits, alarms = (z[kind] for kind in SHARES)
    made = pd.DataFrame({"dprime": hits - alarms, "criterion": -(hits + alarms) / 2}).dropna()
    return made.reset_index()


def figure(table: pd.DataFrame) -> go.Figure:
    """Plot hits and false alarms by condition, from `tabulate`."""
    words = {"hits": "hits", "false_alarms": "false alarms"}
    return groups.plot_measures(table, words, title="Share of attributes chosen", line=0.5)


def conclude(table: pd.DataFrame) -> str:
    """Describe each condition in a sentence."""
    return " ".join(
        f"{format_condition(str(row['condition']))}: participants chose {row['hits']:.0%} of the attributes that the "
        f"AI uses and {row['false_alarms']:.0%} of the others (d' = {write_rounded(row['dprime'], 2)})."
        for row in table.to_dict("records")
    )


ANALYSIS = ExploratoryAnalysis(
    "Attributes: hits and false alarms",
    "Hits: share of the attributes that the AI uses that participants chose; false alarms: of those that it does not "
    "use. d' above 0: participants tell the two apart; criterion above 0: they choose few attributes. Means over "
    "participants with half a judgement added to each kind (Hautus, 1995), and 95% intervals over participants.",
    lambda study: with_figure(tabulate(study.frame), figure),
    needs=lambda study: study.data.task.of_attributes,
    conclude=lambda _, table: conclude(table),
)
