"""Generalised linear mixed models: the one thin module around `glmm`, and the honesty about its fits.

`glmm` maximises the Laplace approximation (or adaptive quadrature) jointly over coefficients and variances, as lme4's
glmer does. What is added here: our own record, columns that the data cannot tell apart named, separation found and
carried to its limit (`study.analysis.models.separation`), boundary fits reported in plain language, and no number that
is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import glmm
import numpy as np
import pandas as pd

from core.errors import ForetellError
from study.analysis.models import (
    convergence,
    denominators,
    estimability,
    fitting,
    laplace,
    ordinal,
    raw_fits,
    sentences,
    separation,
)
from study.analysis.models import formula as formulas
from study.analysis.models.fitting import FitSettings
from study.analysis.models.preparation import prepare
from study.analysis.models.records import EffectColumns, MixedModel, VariancePart
from study.analysis.models.separation import Floats, Mask, Separation
from study.analysis.models.threads import one_blas_thread

CellName = Callable[[Mapping[str, Any]], str]
"""Names a cell of the design, given the value of each predictor."""


def plain_cell(cell: Mapping[str, Any]) -> str:
    """Return a cell of the design in words: ``"period 2, size 14"``."""
    return ", ".join(f"{name} {value}" for name, value in cell.items()) or "the data"


@one_blas_thread()
def fit(
    frame: pd.DataFrame,
    formula: str,
    *,
    family: str = "binomial",
    link: str | None = None,
    agq: int = 1,
    reml: bool = False,
    weights: str | None = None,
    cell_name: CellName = plain_cell,
    near: EffectColumns = (),
    has_df: bool | None = None,
) -> MixedModel:
    """Fit a generalised linear mixed model by maximum likelihood, or a linear one by REML if asked to.

    Parameters
    ----------
    frame
        One row per response (or per group of responses). A categorical's first category is the reference level.
    formula
        As in lme4: ``"correct ~ trial_type + (1|participant)"``, ``"cbind(hits, misses) ~ period + (1|herd)"``.
        Of a binomial response of two words one counts as a success, and a message says which.
        ``(x || id)`` gives each column of ``x`` a variance of its own and no correlations, also the columns of a
        factor (lme4 correlates those).
    family
        ``"binomial"``, ``"ordinal"`` (cumulative logit), ``"poisson"``, ``"gaussian"``, ...
    link
        The family's own if None; ``"probit"`` of a binomial model.
    agq
        Nodes of adaptive Gauss-Hermite quadrature per random effect; 1 is the Laplace approximation.
    reml
        Of a gaussian model: restricted maximum likelihood.
    weights
        Column of prior weights; of a binomial share the number of responses.
    cell_name
        How to name a cell of the fixed-effects design in a message.
    near
        Random effects of a similar fit, from which the search starts where there are slopes.
    has_df
        Whether tests of a model fitted by Laplace have Satterthwaite's degrees of freedom. If None, contrasts have
        them where the model has random slopes, and coefficients are tested by z, as in lme4.

    Raises
    ------
    ForetellError
        The formula cannot be read, a column is missing or has missing values, or no fit was possible.
    """
    settings = FitSettings(family, link, agq, reml, weights)
    _check_settings(settings)
    data, text, coded = prepare(frame, formula, family, weights)
    model = replace(
        _fit_model(data, text, settings, cell_name, near),
        link=link,
        weights=weights,
        levels=formulas.list_levels(data, text),
    )
    if formulas.put_largest_first(data, text) != text:
        model = _order_random_terms(model, text)
    as_fitted = replace(model, formula=text)
    said = (*coded, *model.messages, *convergence.check_convergence(data, as_fitted))
    wanted = formulas.has_slopes(text) if has_df is None else has_df
    parts = split_variance(data, as_fitted) if wanted else ()
    made = replace(model, formula=formula, messages=said, parts=parts)
    return _test_by_t(made) if has_df else made


def split_variance(frame: pd.DataFrame, model: MixedModel) -> tuple[VariancePart, ...]:
    """Split the coefficients' covariance, for the degrees of freedom of tests; nothing where they are z."""
    if not (model.is_laplace and model.blocks):
        return ()
    likelihood, parameters = laplace.of(frame, model)
    if model.family == ordinal.FAMILY:
        return ordinal.split_variance(likelihood, parameters)
    return denominators.split_variance(likelihood, likelihood.at(parameters))


def _test_by_t(model: MixedModel) -> MixedModel:
    """Return the model with degrees of freedom of its coefficients; those without a standard error have none."""
    df = denominators.compute_df(model.parts, np.eye(len(model.coefficients)))
    tested = [
        c if c.se is None else raw_fits.make_coefficient(c.term, c.estimate, c.se, float(own))
        for c, own in zip(model.coefficients, df, strict=True)
    ]
    return replace(model, coefficients=tuple(tested))


def _order_random_terms(model: MixedModel, formula: str) -> MixedModel:
    """Return the model with its random terms in the order of the formula's groupings: fits have the largest first."""
    place = {group: k for k, group in enumerate(dict.fromkeys(term.group for term in formulas.terms(formula)))}
    return replace(
        model,
        random=tuple(sorted(model.random, key=lambda effect: place[effect.group])),
        blocks=tuple(sorted(model.blocks, key=lambda block: place[block.group])),
    )


def _fit_model(
    frame: pd.DataFrame, formula: str, settings: FitSettings, cell_name: CellName, near: EffectColumns
) -> MixedModel:
    if settings.family == ordinal.FAMILY:
        return ordinal.fit(frame, formula, settings)
    raw = fitting.run(frame, formula, settings, near=near)
    design, names = glmm.model_matrix(frame, formulas.extract_fixed_effects(formula))
    kept = ~np.asarray(raw.aliased, dtype=bool)
    if settings.family == "binomial" and kept.any():
        successes, failures = raw_fits.find_outcomes(raw)
        separator = separation.find(design[:, kept], successes, failures)
        if separator is not None:
            cells = _cells(frame, formula, separator.rows, successes, raw_fits.list_weights(raw), cell_name)
            return _limit(frame, formula, settings, raw, design, kept, separator, cells)
    if not math.isfinite(raw.loglik):
        cause = f"{_explain_rank(design, names)}{sentences.reason(raw)}"
        raise ForetellError(f"The model {formula!r} could not be fitted: {cause}")
    return _record(formula, raw, names, design, kept)


def _explain_rank(design: Floats, names: Sequence[str]) -> str:
    """Name the columns that those before them determine; nothing where the rows limit the rank, or nothing does."""
    ranks = [int(np.linalg.matrix_rank(design[:, :k])) for k in range(len(names) + 1)]
    if ranks[-1] in (len(names), len(design)):
        return ""
    determined = [name for name, before, after in zip(names, ranks, ranks[1:], strict=False) if before == after]
    return (
        "its fixed effects are rank-deficient, because other columns determine these; leave their terms out: "
        f"{', '.join(determined)}. "
    )


def _check_settings(settings: FitSettings) -> None:
    if settings.family not in fitting.FAMILIES:
        raise ForetellError(f"There is no family {settings.family!r}; choose {', '.join(fitting.FAMILIES)}.")
    if settings.family == ordinal.FAMILY:
        ordinal.check_settings(settings)


def _record(formula: str, raw: Any, names: list[str], design: Floats, kept: Mask) -> MixedModel:
    random = raw_fits.list_random_effects(raw)
    aliased = estimability.find_aliased_directions(design, kept)
    coefficients = tuple(
        raw_fits.make_coefficient(name, float(estimate), float(se), float(df))
        for name, estimate, se, df, keep in zip(names, raw.beta, raw.se, raw.coef_df, kept, strict=True)
        if keep
    )
    dropped = tuple(name for name, keep in zip(names, kept, strict=True) if not keep)
    return MixedModel(
        formula=formula,
        coefficients=coefficients,
        random=random,
        loglik=float(raw.loglik),
        df=int(kept.sum()) + raw_fits.count_covariance_parameters(raw) + raw_fits.count_dispersion_parameters(raw),
        n=int(raw.nobs),
        converged=bool(raw.converged),
        messages=(
            *_describe_aliased(aliased, [c.term for c in coefficients], dropped),
            *sentences.boundary(random, math.sqrt(raw.dispersion)),
            *(sentences.describe_outsized_estimates(coefficients) if raw.family == "binomial" else ()),
            *sentences.list_warnings(raw),
        ),
        dropped=dropped,
        family=str(raw.family),
        covariance=np.asarray(raw.vcov)[np.ix_(kept, kept)],
        aliased=aliased,
        undetermined=aliased,
        blocks=raw_fits.list_blocks(raw),
        dispersion=float(raw.dispersion),
        reml=bool(raw.reml),
        nodes=int(raw.nagq),
    )


def _describe_aliased(aliased: Floats, kept: list[str], dropped: tuple[str, ...]) -> tuple[str, ...]:
    return sentences.describe_aliased_columns(dropped, estimability.find_equal_columns(aliased, [*kept, *dropped]))


def _limit(
    frame: pd.DataFrame,
    formula: str,
    settings: FitSettings,
    raw: Any,
    design: Floats,
    kept: Mask,
    separator: Separation,
    cells: list[str],
) -> MixedModel:
    """Return the fit at the limit of separation: the model of the rows that are not certain, and the rest named."""
    names = [name for name, keep in zip(raw.names, kept, strict=True) if keep]
    full = design[:, kept]
    inner, left_out = _inner_fit(frame, formula, settings, raw, names, full, ~separator.rows)
    estimate = np.nan_to_num(np.asarray(inner.beta, dtype=np.float64))  # NaN: left open by the remaining rows
    far = separator.far_point(full, raw_fits.find_outcomes(raw)[0], estimate)
    random = raw_fits.list_random_effects(inner)
    coefficients = tuple(
        raw_fits.make_coefficient(name, float(value), math.nan if diverges else float(se))
        for name, value, se, diverges in zip(names, far, inner.se, separator.diverging, strict=True)
    )
    diverging = {
        name: int(sign) for name, sign, flag in zip(names, separator.sign, separator.diverging, strict=True) if flag
    }
    dropped = tuple(name for name, keep in zip(raw.names, kept, strict=True) if not keep)
    aliased = estimability.find_aliased_directions(design, kept)
    return MixedModel(
        formula=formula,
        coefficients=coefficients,
        random=random,
        loglik=float(inner.loglik),
        df=len(names) + formulas.count_covariance_parameters(frame, formula),
        n=int(raw.nobs),
        converged=False,
        messages=(
            *sentences.describe_separation(cells, tuple(diverging)),
            *sentences.describe_slopes_left_out(left_out),
            *_describe_aliased(aliased, [c.term for c in coefficients], dropped),
            *sentences.boundary(random),
            *sentences.list_warnings(inner),
        ),
        dropped=dropped,
        diverging=diverging,
        covariance=raw_fits.compute_covariance(inner),
        aliased=aliased,
        undetermined=estimability.join_directions(aliased, separator.free),
        blocks=raw_fits.list_blocks(inner),
        nodes=int(inner.nagq),
    )


def _inner_fit(
    frame: pd.DataFrame, formula: str, settings: FitSettings, raw: Any, names: list[str], design: Floats, rows: Mask
) -> tuple[Any, list[tuple[str, str]]]:
    """Fit the rows that are left, on the same columns as numbers; with the effects and groupings left out there."""
    if not rows.any():
        raise ForetellError(
            f"The model {formula!r} predicts every response with certainty: there is nothing to estimate."
        )
    counts = raw_fits.list_weights(raw)
    successes = np.round(np.asarray(raw.y) * counts)
    stand_in = {name: f"foretell_x{j}" for j, name in enumerate(names)}
    groups = {name for term in formulas.terms(formula) for name in term.group.split(":")}
    kept = frame.loc[rows, formulas.columns(frame, formula)]
    data: dict[str, Any] = {name: kept[name].to_numpy() if name in groups else kept[name].array for name in kept}
    data |= {column: design[rows, j] for j, column in enumerate(stand_in.values())}
    data |= {"foretell_hits": successes[rows], "foretell_misses": (counts - successes)[rows]}
    fixed = " + ".join(stand_in.values())
    random, columns, left_out = formulas.write_in_columns(frame, formula, rows, stand_in)
    text = f"cbind(foretell_hits, foretell_misses) ~ 0 + {fixed}{random}"
    inner = fitting.run(pd.DataFrame(data | columns), text, replace(settings, weights=None))
    if not math.isfinite(inner.loglik):
        raise ForetellError(f"The model {formula!r} could not be fitted: {sentences.reason(inner)}")
    named = {column: name for name, column in stand_in.items()}
    groupings = [(group, [named.get(t, t) for t in terms]) for group, terms in inner.re_groups]
    return replace(inner, re_groups=groupings), left_out


def _cells(
    frame: pd.DataFrame, formula: str, rows: Mask, successes: Mask, weights: Floats, cell_name: CellName
) -> list[str]:
    """Write a clause for each separated cell: its name, its number of responses, all correct or all incorrect."""
    names = formulas.columns(frame, formulas.extract_fixed_effects(formula))
    table = frame.loc[rows, names].assign(foretell_right=successes[rows], foretell_responses=weights[rows])
    cells = table.groupby([*names, "foretell_right"], observed=True, sort=False)["foretell_responses"].sum()
    clauses = []
    for key, responses in cells.items():
        *values, right = key if isinstance(key, tuple) else (key,)
        verdict = "correct" if right else "incorrect"
        name = cell_name(dict(zip(names, values, strict=True)))
        clauses.append(f"{name}: all {int(responses):,} responses are {verdict}")
    return clauses
