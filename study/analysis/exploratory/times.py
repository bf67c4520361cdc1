"""The nested analysis on the logarithm of response times: linear mixed models with the same terms.

Times enter in milliseconds, responses right or wrong alike. The models are compared as fitted by maximum likelihood;
the coefficients of the largest are those of restricted maximum likelihood, with Satterthwaite's degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from core.errors import ForetellError
from study.analysis.exploratory.analysis import ExploratoryAnalysis
from study.analysis.models import mixed
from study.analysis.models.intervals import wald
from study.analysis.models.records import MixedModel
from study.analysis.planned.nested import FIXED, RANDOM, RatioTest, ratio_test


@dataclass(frozen=True)
class TimesAnalysis:
    """The three models by maximum likelihood, the tests between neighbours, and the largest model by REML."""

    models: Mapping[str, MixedModel]
    tests: tuple[RatioTest, ...]
    reml: MixedModel
    messages: tuple[str, ...] = ()


def analyze(frame: pd.DataFrame) -> TimesAnalysis:
    """Fit the three models to the responses with a response time.

    Raises
    ------
    ForetellError
        There is no column ``rt_ms``, or no positive time in it.
    """
    timed, messages = _select_timed(frame)
    models = {
        name: mixed.fit(timed, f"log_rt ~ {fixed} + {RANDOM}", family="gaussian") for name, fixed in FIXED.items()
    }
    reml = mixed.fit(timed, f"log_rt ~ {FIXED['interaction']} + {RANDOM}", family="gaussian", reml=True)
    tests = tuple(ratio_test(a, models[a], b, models[b]) for a, b in pairwise(models))
    return TimesAnalysis(models, tests, reml, messages)


def _select_timed(frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    if "rt_ms" not in frame:
        raise ForetellError("The responses have no column 'rt_ms': name the column of response times in milliseconds.")
    timed = frame[frame["rt_ms"] > 0]
    if timed.empty:
        raise ForetellError("Column 'rt_ms' has no positive time: it must be in milliseconds.")
    lost = len(frame) - len(timed)
    messages = (f"{lost} of {len(frame)} responses have no positive response time and were left out.",) if lost else ()
    return timed.assign(log_rt=np.log(timed["rt_ms"])), messages


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Tabulate the largest model's coefficients (REML): Wald intervals, se, df, t, p."""
    model = analyze(frame).reml
    tested = pd.DataFrame([(c.se, c.df, c.z, c.p) for c in model.coefficients], columns=["se", "df", "t", "p"])
    return wald(model).join(tested)


ANALYSIS = ExploratoryAnalysis(
    "Log response times: the interaction model",
    "Linear mixed model, REML, Satterthwaite's degrees of freedom.",
    lambda study: (table(study.frame), None),
    is_of_predictions=True,
)
