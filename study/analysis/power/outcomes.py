"""The tests of nested models in a simulated study, by the rules of the analysis, without what is not read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pandas as pd

from core.errors import ForetellError
from study.analysis.models import fitting, mixed, random_effects, raw_fits
from study.analysis.models import formula as formulas
from study.analysis.models.records import Coefficient, EffectColumns, MixedModel
from study.analysis.models.sentences import LEVEL
from study.analysis.models.threads import one_blas_thread
from study.analysis.planned import equivalence, nested
from study.analysis.planned.contrasts import Contrast, estimate, table
from study.analysis.planned.nested import RatioTest
from study.analysis.responses.outcome import find_outcome
from study.plan.equivalence import Bounds
from study.plan.preregistration import Tests


@one_blas_thread()
def run_tests(
    frame: pd.DataFrame, models: Mapping[str, str], tests: Tests
) -> tuple[tuple[RatioTest, ...], str, EffectColumns]:
    """Test each model on the next, as `nested.analyze` does; with the random effects that are left.

    A model that cannot be fitted leaves its tests without p.
    """
    fixed, random = random_effects.split(models)
    random, _ = random_effects.restrict(frame, random)
    largest = list(fixed)[-1]
    model, chosen = random_effects.reduce(
        random,
        lambda effects, near: _fit(frame, fixed[largest], effects, near),
        lambda made: made.effects if made else (),
    )
    near = model.effects if model else ()
    made = {name: model if name == largest else _fit(frame, terms, chosen, near) for name, terms in fixed.items()}
    has_df = tests == "corrected" and formulas.has_slopes(f"y ~ {random}")
    each = [_test(a, made[a], b, _add_parts(frame, made[b]) if has_df else made[b], tests) for a, b in pairwise(made)]
    return (nested.correct(each) if tests == "corrected" else tuple(each)), chosen, near


def run_contrasts(
    frame: pd.DataFrame,
    model: str,
    random: str,
    contrasts: Sequence[Contrast],
    near: EffectColumns = (),
    bounds: Bounds | None = None,
    *,
    has_df: bool | None = None,
) -> pd.DataFrame:
    """Tabulate the corrected p of each contrast of a model and, with bounds, of its equivalence.

    Parameters
    ----------
    has_df
        As of `study.analysis.models.mixed.fit`.

    Returns
    -------
    pandas.DataFrame
        contrast, p_holm, and with bounds (percentage points) p_equivalence_holm; NaN where the fit failed.
    """
    names = [one.name for one in contrasts]
    columns = ["p_holm", *([] if bounds is None else ["p_equivalence_holm"])]
    try:
        fitted = _fit_whole(frame, model, random, near, has_df)
    except ForetellError:
        return pd.DataFrame(math.nan, index=range(len(names)), columns=columns).assign(contrast=names)
    if bounds is None:
        made = estimate(fitted, contrasts)
    else:
        made = table(fitted, contrasts)
        made["p_equivalence_holm"] = equivalence.tabulate(made, bounds, LEVEL)["p_equivalence_holm"]
    return made[["contrast", *columns]].fillna(dict.fromkeys(columns, 1.0))  # no finite estimate is no evidence


def _fit(frame: pd.DataFrame, fixed: str, random: str, near: EffectColumns) -> MixedModel | None:
    """Return what a test reads of a fit, without standard errors and checks; None where it failed.

    Under separation the limit, which is finite: the tests hold there too.
    """
    outcome = find_outcome(frame)
    if not outcome.is_scored:
        return _try_whole(frame, fixed, random, near)
    formula = f"{outcome.column} ~ {fixed} + {random}"
    raw = fitting.run(frame, formula, fitting.FitSettings(), errors=False, near=near)
    if not math.isfinite(raw.loglik):
        return _try_whole(frame, fixed, random, near)
    coefficients = tuple(
        Coefficient(name, float(value), None, None, None)
        for name, value, out in zip(raw.names, raw.beta, raw.aliased, strict=True)
        if not out
    )
    blocks = raw_fits.list_blocks(raw)
    return MixedModel(formula, coefficients, (), float(raw.loglik), int(raw.df), int(raw.nobs), True, blocks=blocks)


def _fit_whole(
    frame: pd.DataFrame, fixed: str, random: str, near: EffectColumns, has_df: bool | None = False
) -> MixedModel:
    outcome = find_outcome(frame)
    formula = f"{outcome.column} ~ {fixed} + {random}"
    return mixed.fit(frame, formula, family=outcome.family, near=near, has_df=has_df)


def _try_whole(frame: pd.DataFrame, fixed: str, random: str, near: EffectColumns) -> MixedModel | None:
    try:
        return _fit_whole(frame, fixed, random, near)
    except ForetellError:
        return None


def _add_parts(frame: pd.DataFrame, model: MixedModel | None) -> MixedModel | None:
    return model and replace(model, parts=mixed.split_variance(frame, model))


def _test(a: str, small: MixedModel | None, b: str, large: MixedModel | None, tests: Tests) -> RatioTest:
    if small is None or large is None:
        return RatioTest(a, b, math.nan, 0, None)
    return nested.ratio_test(a, small, b, large, tests)
