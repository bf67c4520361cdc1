"""The three nested models of the study and their likelihood-ratio tests.

Logistic mixed models of "did this participant predict the AI on this trial", or cumulative-logit models of the level
where no response is right or wrong, with the fixed effects of Folke, Li,
Sojitra, Yang & Shafto (2021), arXiv:2106.09106, Table 1, and the random slopes of participants, categories and images
that their tests need. The paper has random intercepts of participants and categories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2
from scipy.stats import f as f_distribution

from core.errors import ForetellError
from core.names import lower_first
from core.types import Progress, silent
from study.analysis.means.adjustment import holm
from study.analysis.models import denominators, mixed, random_effects
from study.analysis.models import formula as formulas
from study.analysis.models.records import EffectColumns, MixedModel
from study.analysis.models.sentences import BOUNDARY
from study.analysis.responses import reading as responses
from study.analysis.responses.outcome import find_outcome
from study.bundle import TYPE_LABELS
from study.conditions import format_condition
from study.plan.preregistration import NESTED, Tests

RANDOM = random_effects.INTERCEPTS
FIXED = NESTED
"""Fixed effects of each model, smallest first."""


@dataclass(frozen=True)
class RatioTest:
    """A likelihood-ratio test of two nested models.

    Attributes
    ----------
    chisq
        Twice the difference in log-likelihood.
    df2
        Denominator degrees of freedom of `f`; None of a test by the chi-square distribution.
    p
        Uncorrected.
    p_holm
        Corrected for the number of tests, where the verdicts are judged together.
    f
        chisq / df, divided by how much REML would enlarge the error (`study.analysis.models.denominators`); None of a
        test by the chi-square distribution.
    """

    smaller: str
    larger: str
    chisq: float
    df: int
    p: float | None
    df2: float | None = None
    p_holm: float | None = None
    f: float | None = None

    @property
    def name(self) -> str:
        """Name the test, the larger model first: ``"explanation vs null"``."""
        return f"{self.larger} vs {self.smaller}"

    @property
    def decisive_p(self) -> float | None:
        """The p that is held against alpha."""
        return self.p if self.p_holm is None else self.p_holm


@dataclass(frozen=True)
class NestedAnalysis:
    """The models by name, the tests between neighbours, and what to know about the data.

    Attributes
    ----------
    random
        The random effects of all models, as fitted.
    reduced_from
        Those that were asked for, where the fit was singular.
    unsupported
        What was asked for and the responses do not support, in sentences.
    """

    models: Mapping[str, MixedModel]
    tests: tuple[RatioTest, ...]
    data_messages: tuple[str, ...] = ()
    random: str = RANDOM
    reduced_from: str | None = None
    unsupported: tuple[str, ...] = ()

    @property
    def requested_random(self) -> str:
        """The random effects before a singular fit was reduced."""
        return self.reduced_from or self.random

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
        """Describe which random effects the responses do not support, and how singular ones were reduced."""
        if self.reduced_from is None:
            return self.unsupported
        return (
            *self.unsupported,
            f"The random effects {self.reduced_from} gave a singular fit. The models have {self.random} instead, which "
            "the likelihood needs (Matuschek, Kliegl, Vasishth, Baayen & Bates, 2017).",
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "models": {name: model.as_dict() for name, model in self.models.items()},
            "lrt": [{field.name: getattr(test, field.name) for field in fields(RatioTest)} for test in self.tests],
        }


def analyze(
    frame: pd.DataFrame | responses.Responses,
    *,
    fixed: Mapping[str, str] | None = None,
    random: str | None = None,
    tests: Tests = "corrected",
    progress: Progress = silent,
) -> NestedAnalysis:
    """Fit nested models and test each on the next.

    Parameters
    ----------
    fixed
        Fixed effects of each model, smallest first, with or without random effects; the paper's three if None, with
        the random effects that the tests need and the design supports (`random_effects.sensible`).
    random
        Random effects of all models, in place of those that `fixed` names. What the responses do not support is left
        out (`random_effects.restrict`), and a singular fit is reduced by `random_effects.RULE`.
    tests
        As of `study.plan.preregistration.AnalysisPlan`.

    Raises
    ------
    ForetellError
        The responses are not as `study.analysis.responses.reading` needs them, or a model could not be fitted.
    """
    data = frame if isinstance(frame, responses.Responses) else responses.prepare(frame)
    named, planned = random_effects.split(FIXED if fixed is None else fixed)
    planned = random_effects.sensible(data.frame) if fixed is None else planned
    asked, unsupported = random_effects.restrict(data.frame, random or planned)
    largest = list(named)[-1]
    progress(0, len(named), f"Fitting the {largest} model")
    has_df = formulas.has_slopes(f"y ~ {asked}")
    model, chosen = random_effects.reduce(
        asked,
        lambda effects, near: _fit(data.frame, named[largest], effects, near, has_df=has_df),
        lambda fitted: fitted.effects,
    )
    models: dict[str, MixedModel] = {}
    for done, (name, terms) in enumerate(named.items(), start=1):
        if name != largest:
            progress(done, len(named), f"Fitting the {name} model")
        models[name] = model if name == largest else _fit(data.frame, terms, chosen, model.effects, has_df=has_df)
    progress(len(named), len(named), "Models fitted")
    made = [ratio_test(a, models[a], b, models[b], tests) for a, b in pairwise(models)]
    judged = correct(made) if tests == "corrected" else tuple(made)
    return NestedAnalysis(models, judged, data.messages, chosen, None if chosen == asked else asked, unsupported)


def _fit(frame: pd.DataFrame, terms: str, random: str, near: EffectColumns, *, has_df: bool) -> MixedModel:
    outcome = find_outcome(frame)
    formula = f"{outcome.column} ~ {terms} + {random}"
    model = mixed.fit(frame, formula, family=outcome.family, cell_name=cell_name, near=near, has_df=has_df)
    if not formulas.has_slopes(f"y ~ {random}"):
        return model
    # What is left at 0 is left by the rule, which the analysis states: no model needs a warning of its own.
    return replace(model, messages=tuple(said for said in model.messages if not said.startswith(BOUNDARY)))


def ratio_test(
    smaller: str, small: MixedModel, larger: str, large: MixedModel, tests: Tests = "corrected"
) -> RatioTest:
    """Test twice the difference in log-likelihood; degrees of freedom from the parameters actually estimated."""
    if small.n != large.n:
        raise ForetellError(f"The models {smaller} and {larger} were fitted to different rows and cannot be compared.")
    # A negative difference can only be the optimiser's rounding: the larger model contains the smaller one.
    chisq = max(0.0, 2.0 * (large.loglik - small.loglik))
    df = large.df - small.df
    df2, scale = math.inf, 1.0
    if tests == "corrected":
        known = {c.term for c in small.coefficients}
        added = [k for k, c in enumerate(large.coefficients) if c.term not in known and c.term not in large.diverging]
        tested = np.eye(len(large.coefficients))[added]
        df2, scale = denominators.pool_df(large.parts, tested), denominators.compute_scale(large.parts, tested)
    p = compute_p(chisq / scale, df, df2) if df > 0 else None
    if df == 0 or not math.isfinite(df2):
        return RatioTest(smaller, larger, chisq, df, p)
    return RatioTest(smaller, larger, chisq, df, p, df2, f=chisq / df / scale)


def compute_p(chisq: float, df: int, df2: float) -> float:
    """Return p of a likelihood ratio: of F = chisq / df with df and df2 degrees of freedom, chi-square's if infinite.

    Under the null hypothesis both distributions are the same where df2 is large. Where a linear model has all its
    error from as many levels as df2, F is more careful than the exact test.
    """
    return float(f_distribution.sf(chisq / df, df, df2)) if math.isfinite(df2) else float(chi2.sf(chisq, df))


def correct(tests: Sequence[RatioTest]) -> tuple[RatioTest, ...]:
    """Add p corrected for the number of tests that have one (Holm, 1979)."""
    adjusted = holm(np.array([math.nan if test.p is None else test.p for test in tests]))
    return tuple(
        replace(test, p_holm=None if math.isnan(p) else float(p)) for test, p in zip(tests, adjusted, strict=True)
    )


def comparison(analysis: NestedAnalysis) -> pd.DataFrame:
    """Tabulate model, df, loglik, aic, bic of each, and chisq, chisq_df, df2, f, p, p_holm of each test."""
    tests = {test.larger: test for test in analysis.tests}
    rows = []
    for name, model in analysis.models.items():
        test = tests.get(name)
        tested = (test.chisq, test.df, test.df2, test.f, test.p, test.p_holm) if test else (None,) * 6
        rows.append((name, model.df, model.loglik, model.aic, model.bic, *tested))
    table = pd.DataFrame(
        rows, columns=["model", "df", "loglik", "aic", "bic", "chisq", "chisq_df", "df2", "f", "p", "p_holm"]
    )
    return table.drop(columns=[name for name in ("df2", "f", "p_holm") if table[name].isna().all()])


def cell_name(cell: Mapping[str, Any]) -> str:
    """Return a cell of the design in words: ``"AI right with both explanations"``."""
    if "trial_type" not in cell:
        return mixed.plain_cell(cell)
    words: str = TYPE_LABELS[str(cell["trial_type"])]
    if not {"saliency", "examples"} <= set(cell):
        return words
    condition = responses.CONDITION_OF_FACTORS[int(cell["saliency"]), int(cell["examples"])]
    return f"{words} with {lower_first(format_condition(condition))}"
