"""Interim analyses, as the plan declares them: may the collection end here?"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from core.errors import ForetellError
from core.types import Progress, silent
from study.analysis.models.records import InterimAnalysis
from study.analysis.planned import analysis as planned
from study.analysis.planned.bounds import bounds
from study.analysis.responses import reading as responses
from study.plan.preregistration import AnalysisPlan, Stopping


def schedule(plan: AnalysisPlan) -> pd.DataFrame:
    """Tabulate look, participants (per condition), bound (on ``|z|``)."""
    stopping = _require_stopping(plan)
    limits = bounds([n / stopping.looks[-1] for n in stopping.looks], plan.alpha, stopping.spending)
    return pd.DataFrame({"look": np.arange(len(limits)) + 1, "participants": stopping.looks, "bound": limits})


def due(finished: Mapping[str, int], plan: AnalysisPlan) -> int:
    """Return the number of the last interim analysis that is due at so many participants per condition; 0 for none."""
    fewest = min(finished.values(), default=0)
    return sum(fewest >= participants for participants in _require_stopping(plan).looks)


def run_interim_analysis(
    frame: pd.DataFrame, plan: AnalysisPlan, number: int, progress: Progress = silent
) -> InterimAnalysis:
    """Analyse the participants who finished first in each condition: the result is the same whenever it is made.

    Parameters
    ----------
    frame
        The responses of participants who finished, as `study.collection.tables.frames.response_frame` has them.

    Raises
    ------
    ForetellError
        The plan declares no such look, or its exclusions leave nobody.
    """
    planned_look = schedule(plan).set_index("look").loc[number]
    participants = int(planned_look["participants"])
    data = responses.prepare(_first(frame, participants), name="The responses of this interim analysis")
    largest = dict([list(plan.models.items())[-1]])
    only = plan.model_copy(update={"models": largest, "contrasts": (_require_stopping(plan).contrast,)})
    tests = planned.execute(data, only, progress=progress)
    z = _find_normal_quantile(tests.contrasts) if len(tests.contrasts) else math.nan  # a condition without responses
    return InterimAnalysis(number, len(_require_stopping(plan).looks), participants, float(planned_look["bound"]), z)


def _find_normal_quantile(contrasts: pd.DataFrame) -> float:
    """Return the standard normal value with the p of the contrast's test, which is t where models have slopes."""
    z, df = float(contrasts["z"].iloc[0]), float(contrasts["df"].iloc[0])
    return z if math.isnan(df) else math.copysign(float(norm.isf(t.sf(abs(z), df))), z)


def _first(frame: pd.DataFrame, participants: int) -> pd.DataFrame:
    """Select the responses of the participants who finished first, so many in each condition."""
    ended = frame.groupby(["condition", "participant"])["received_at"].max().sort_values(kind="stable")
    chosen = ended.groupby(level="condition").head(participants).index.get_level_values("participant")
    return frame[frame["participant"].isin(chosen)]


def _require_stopping(plan: AnalysisPlan) -> Stopping:
    if plan.stopping is None:
        raise ForetellError("The plan declares no interim analyses: add [analysis.stopping] before collecting data.")
    return plan.stopping
