"""How often participants gave each level of a scale, where the AI was right and where it was wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.errors import ForetellError
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryAnalysis
from study.analysis.responses import accuracies
from study.bundle import TRIAL_TYPES


def table(frame: pd.DataFrame, choices: tuple[str, ...]) -> pd.DataFrame:
    """Tabulate condition, trial_type, level, choice, `responses`, share, low, high (95%, over participants).

    ``share`` is of the responses of a condition and trial type; ``responses`` are those of the level.

    Raises
    ------
    ForetellError
        The column ``choice`` has a value that is none of the ``choices``.
    """
    unknown = sorted({*frame["choice"].dropna().astype(str)} - {*choices})
    if unknown:
        raise ForetellError(f"Column 'choice' has {unknown[0]!r}: its values are {', '.join(choices)}.")
    given = frame[frame["choice"].notna()]
    rows = []
    for condition in accuracies.order(given):
        for trial_type in TRIAL_TYPES:
            own = given[(given["condition"] == condition) & (given["trial_type"] == trial_type)]
            if own.empty:
                continue
            counts = pd.crosstab(own["participant"], own["choice"]).reindex(columns=list(choices), fill_value=0)
            chosen = counts.to_numpy(dtype=np.float64)
            every = np.repeat(chosen.sum(axis=1, keepdims=True), len(choices), axis=1)
            share, low, high = accuracies.compute_intervals(chosen, every, 0.95)
            rows += [
                (condition, trial_type, k + 1, choice, int(chosen[:, k].sum()), share[k], low[k], high[k])
                for k, choice in enumerate(choices)
            ]
    names = ["condition", "trial_type", "level", "choice", "responses", "share", "low", "high"]
    return pd.DataFrame(rows, columns=names)


def _has_levels(study: AnalysedStudy) -> bool:
    return study.data.task.is_scale and "choice" in study.frame


ANALYSIS = ExploratoryAnalysis(
    "Levels of the scale",
    "Share of each level among the responses of a condition and trial type, the lowest level first; 95% intervals over "
    "participants. Correct responses count the side of the scale only.",
    lambda study: (table(study.frame, study.data.task.choices or ()), None),
    needs=_has_levels,
)
