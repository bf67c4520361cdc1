"""The three nested models of the study and their likelihood-ratio tests.

Logistic mixed models of "did this participant predict the AI on this trial", with crossed random intercepts of
participants and of target categories. Folke, Li, Sojitra, Yang & Shafto (2021), arXiv:2106.09106, Table 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd
from scipy.stats import chi2

from core.errors import ForetellError
from core.names import lower_first
from core.types import Progress, silent
from study.analysis.models import mixed, random_effects
from study.analysis.models.records import MixedModel
from study.analysis.responses import reading as responses
from study.bundle import TYPE_LABELS
from study.conditions import format_condition
from study.plan.preregistration import NESTED

RANDOM = random_effects.INTERCEPTS
FIXED = NESTED
"""Fixed effects of each model, smallest first."""


@dataclass(frozen=True)
class RatioTest:
    """A likelihood-ratio test of two nested models: p of chi-square with df degrees of freedom."""

    smaller: str
    larger: str
    chisq: float
    df: int
    p: float | None

    @property
    def name(self) -> str:
        """Name the test, the larger model first: ``"explanation vs null"``."""
        return f"{self.larger} vs {self.smaller}"


@dataclass(frozen=True)
class NestedAnalysis:
    """The models by name, the tests between neighbours, and what to know about the data.

    Attributes
    ----------
    random
        The random effects of all models, as fitted.
    reduced_from
        Those that were asked for, where the fit was singular.
    """

    models: Mapping[str, MixedModel]
    tests: tuple[RatioTest, ...]
    data_messages: tuple[str, ...] = ()
    random: str = RANDOM
    reduced_from: str | None = None

    @property
    def largest(self) -> MixedModel:
        """The last of the nested models, which has all the others' terms."""
        return list(self.models.values())[-1]

    @property
    def messages(self) -> tuple[str, ...]:
        """Every message: about the data first, then about each model, with its name."""
        said = [f"Model {name}: {message}" for name, model in self.models.items() for message in model.messages]
        return (*self.data_messages, *self.reduction, *said)

    @property
    def reduction(self) -> tuple[str, ...]:
        """Describe how singular random effects were reduced."""
        if self.reduced_from is None:
            return ()
        return (
            f"The random effects {self.reduced_from} gave a singular fit. The models have {self.random} instead. "
            f"{random_effects.RULE}",
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "models": {name: model.as_dict() for name, model in self.models.items()},
            "lrt": [
                {"smaller": t.smaller, "larger": t.larger, "chisq": t.chisq, "df": t.df, "p": t.p} for t in self.tests
            ],
        }


def analyze(
    frame: pd.DataFrame | responses.Responses,
    *,
    fixed: Mapping[str, str] | None = None,
    random: str | None = None,
    progress: Progress = silent,
) -> NestedAnalysis:
    """Fit nested models and test each on the next.

    Parameters
    ----------
    fixed
        Fixed effects of each model, smallest first, with or without random effects; the paper's three if None.
    random
        Random effects of all models, in place of those that `fixed` names. A singular fit is reduced by
        `random_effects.RULE`.

    Raises
    ------
    ForetellError
        The responses are not as `study.analysis.responses.reading` needs them, or a model could not be fitted.
    """
    data = frame if isinstance(frame, responses.Responses) else responses.prepare(frame)
    named, planned = random_effects.split(FIXED if fixed is None else fixed)
    asked = random or planned
    largest = list(named)[-1]
    progress(0, len(named), f"Fitting the {largest} model")
    model, chosen = random_effects.reduce(
        asked,
        lambda effects: _fit(data.frame, named[largest], effects),
        lambda fitted: [(block.group, block.terms, block.covariance) for block in fitted.blocks],
    )
    models: dict[str, MixedModel] = {}
    for done, (name, terms) in enumerate(named.items(), start=1):
        if name != largest:
            progress(done, len(named), f"Fitting the {name} model")
        models[name] = model if name == largest else _fit(data.frame, terms, chosen)
    progress(len(named), len(named), "Models fitted")
    tests = tuple(ratio_test(a, models[a], b, models[b]) for a, b in pairwise(models))
    return NestedAnalysis(models, tests, data.messages, chosen, None if chosen == asked else asked)


def _fit(frame: pd.DataFrame, terms: str, random: str) -> MixedModel:
    return mixed.fit(frame, f"correct ~ {terms} + {random}", cell_name=cell_name)


def ratio_test(smaller: str, small: MixedModel, larger: str, large: MixedModel) -> RatioTest:
    """Test twice the difference in log-likelihood; degrees of freedom from the parameters actually estimated."""
    if small.n != large.n:
        raise ForetellError(f"The models {smaller} and {larger} were fitted to different rows and cannot be compared.")
    # A negative difference can only be the optimiser's rounding: the larger model contains the smaller one.
    chisq = max(0.0, 2.0 * (large.loglik - small.loglik))
    df = large.df - small.df
    return RatioTest(smaller, larger, chisq, df, float(chi2.sf(chisq, df)) if df > 0 else None)


def comparison(analysis: NestedAnalysis) -> pd.DataFrame:
    """Tabulate model, df, loglik, aic, bic of each, and chisq, chisq_df, p of the test against the model before it."""
    tests = {test.larger: test for test in analysis.tests}
    rows = []
    for name, model in analysis.models.items():
        test = tests.get(name)
        tested = (test.chisq, test.df, test.p) if test else (None, None, None)
        rows.append((name, model.df, model.loglik, model.aic, model.bic, *tested))
    return pd.DataFrame(rows, columns=["model", "df", "loglik", "aic", "bic", "chisq", "chisq_df", "p"])


def cell_name(cell: Mapping[str, Any]) -> str:
    """Return a cell of the design in words: ``"AI right with both explanations"``."""
    if "trial_type" not in cell:
        return mixed.plain_cell(cell)
    words: str = TYPE_LABELS[str(cell["trial_type"])]
    if not {"saliency", "examples"} <= set(cell):
        return words
    condition = responses.CONDITION_OF_FACTORS[int(cell["saliency"]), int(cell["examples"])]
    return f"{words} with {lower_first(format_condition(condition))}"
