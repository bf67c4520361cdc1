"""Ordinal mixed models: cumulative logits with thresholds in place of an intercept (proportional odds).

logit P(level <= k) = threshold_k - eta with eta = X beta + Z b (McCullagh, 1980,
doi:10.1111/j.2517-6161.1980.tb01109.x; R's ordinal::clmm): exp(beta) multiplies the odds of a higher level, wherever
the scale is cut. The Laplace-approximate likelihood (`study.analysis.models.laplace`) is maximised over coefficients,
thresholds and factors together, from the model without random terms, whose likelihood has a single maximum. Standard
errors come from the observed information; tests are z, as those of clmm, and of contrasts t where there are slopes.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import glmm
import numpy as np
import pandas as pd

from core.errors import ForetellError
from study.analysis.models import (
    coding,
    denominators,
    estimability,
    laplace,
    raw_fits,
    search,
    sentences,
    separation,
    starts,
)
from study.analysis.models import formula as formulas
from study.analysis.models.densities import CumulativeLogit
from study.analysis.models.fitting import FitSettings
from study.analysis.models.laplace import Block, Laplace
from study.analysis.models.records import Coefficient, Floats, MixedModel, RandomBlock, RandomEffect, VariancePart
from study.analysis.models.search import LikelihoodMaximum

FAMILY = "ordinal"
FIRST_SD = 0.5
"""Standard deviation (log-odds) of the random effects at which the search starts."""
MORE_SDS = (1.5, 5.0)
"""Standard deviations of further starts where responses are few."""
_UNFINISHED = "The search ended before the maximum: do not rely on these numbers; simplify the random effects."
_INTERCEPT = "(Intercept)"


@dataclass(frozen=True)
class _Data:
    """What is fitted.

    Attributes
    ----------
    design, names
        (n, p) columns of the fixed effects that the rows can tell apart, without an intercept.
    aliased, dropped
        As of `MixedModel`.
    level, weight, offset
        (n,) level from 1, prior weight, and what is added to eta.
    levels
        Their names, the lowest first.
    """

    design: Floats
    names: Sequence[str]
    aliased: Floats
    dropped: tuple[str, ...]
    level: Floats
    weight: Floats
    offset: Floats
    levels: Sequence[str]

    def make_likelihood(self, blocks: Sequence[Block]) -> Laplace:
        """Make the likelihood with some random terms."""
        return Laplace(self.design, self.level, self.weight, blocks, CumulativeLogit(), self.offset)

    @property
    def thresholds(self) -> list[str]:
        """Names of the thresholds: ``"1|2"``."""
        return [f"{low}|{high}" for low, high in zip(self.levels, self.levels[1:], strict=False)]


def check_settings(settings: FitSettings) -> None:
    """Refuse what these models do not have.

    Raises
    ------
    ForetellError
        Another link than the logit, quadrature, or restricted maximum likelihood.
    """
    if settings.density is None or settings.reml:
        raise ForetellError(
            "An ordinal model has the logit link and is fitted by maximum likelihood with the Laplace approximation: "
            "leave out any other link, quadrature points (agq) and REML."
        )


def fit(frame: pd.DataFrame, formula: str, settings: FitSettings) -> MixedModel:
    """Fit the cumulative-logit mixed model of a formula in the notation of `glmm`.

    Parameters
    ----------
    frame
        One row per response, which is a categorical in the order of its levels (`coding.code_levels`).

    Raises
    ------
    ForetellError
        The formula has no intercept for the thresholds to take the place of, or an estimate would be infinite.
    """
    data = _read(frame, formula, settings)
    _refuse_separation(data, formula)
    terms = formulas.blocks(frame, formula)
    blocks = [Block(*_swap(formulas.levels(frame, group), values)) for group, _, values in terms]
    plain, scale = _fit_without_random_terms(data)
    likelihood = data.make_likelihood(blocks or [_make_empty_block(data)])
    maximum = _climb(likelihood, plain, scale, terms) if blocks else plain
    spread = search.compute_spread(likelihood, maximum)
    maximum = search.take_newton_step(likelihood, maximum, spread)
    return _record(formula, data, likelihood, maximum, spread, terms)


def split_variance(likelihood: Laplace, parameters: Floats) -> tuple[VariancePart, ...]:
    """Split the coefficients' covariance as `denominators.split_variance`, with an intercept for the thresholds.

    Of two levels it is that of the logistic model. Of more the thresholds also move against each other, which changes
    the coefficients' covariance little and the shares of its sources less.
    """
    point = likelihood.at(parameters)
    with_intercept = copy.copy(likelihood)
    with_intercept.design = np.column_stack([np.ones(len(likelihood.design)), likelihood.design])
    parts = denominators.split_variance(with_intercept, point)
    return tuple(replace(part, covariance=part.covariance[1:, 1:], spanned=part.spanned[1:]) for part in parts)


def _swap(levels: tuple[np.ndarray, list[str]], values: Floats) -> tuple[np.ndarray, Floats, list[str]]:
    return levels[0], values, levels[1]


def _read(frame: pd.DataFrame, formula: str, settings: FitSettings) -> _Data:
    columns, names = glmm.model_matrix(frame, formulas.extract_fixed_effects(formula))
    if _INTERCEPT not in names:
        raise ForetellError(
            f"The formula {formula!r} has no intercept, whose place the thresholds of an ordinal model take: leave out "
            "'0 +' or '- 1'."
        )
    order = sorted(range(len(names)), key=lambda k: names[k] != _INTERCEPT)
    design, ordered = np.asarray(columns, dtype=np.float64)[:, order], [names[k] for k in order]
    ranks = [int(np.linalg.matrix_rank(design[:, :k])) for k in range(len(order) + 1)]
    kept = np.diff(ranks) > 0
    aliased = estimability.find_aliased_directions(design, kept)[1:]  # differences of means have no intercept
    level, weight = coding.read_response(frame, formula, settings.weights, FAMILY)
    return _Data(
        design=design[:, kept][:, 1:],
        names=[name for name, keep in zip(ordered, kept, strict=True) if keep][1:],
        aliased=aliased,
        dropped=tuple(name for name, keep in zip(ordered, kept, strict=True) if not keep),
        level=level,
        weight=weight,
        offset=formulas.offset(frame, formula),
        levels=coding.read_levels(frame, formula),
    )


def _refuse_separation(data: _Data, formula: str) -> None:
    """Refuse estimates that are infinite: each response is a success or failure at the thresholds next to it."""
    cuts = np.eye(len(data.thresholds))
    at = data.level.astype(np.int64)
    below, above = (data.weight > 0) & (at > 1), (data.weight > 0) & (at <= len(cuts))
    failures = np.hstack([-data.design[below], cuts[at[below] - 2]])
    successes = np.hstack([-data.design[above], cuts[at[above] - 1]])
    is_success = np.arange(len(failures) + len(successes)) >= len(failures)
    separator = separation.find(np.vstack([failures, successes]), is_success, ~is_success)
    if separator is not None:
        names = [name for name, flag in zip([*data.names, *data.thresholds], separator.diverging, strict=True) if flag]
        raise ForetellError(
            f"The model {formula!r} has no finite estimate of {', '.join(map(sentences.words, names))}, because all "
            "responses of some rows are at one end of the scale: leave a term out, or join levels of the response."
        )


def _make_empty_block(data: _Data) -> Block:
    """Make a random term that adds 0 to each row: of a model without any."""
    return Block(np.zeros(len(data.level), dtype=np.int64), np.zeros((len(data.level), 1)), ["all"])


def _fit_without_random_terms(data: _Data) -> tuple[LikelihoodMaximum, Floats]:
    """Fit the fixed effects and thresholds; return the maximum, and a square scale of the parameters there."""
    likelihood = data.make_likelihood([_make_empty_block(data)])
    below = np.array([data.weight[data.level <= k].sum() for k in range(1, len(data.levels))]) / data.weight.sum()
    cuts = np.log(below / (1.0 - below)) + float(np.average(data.offset, weights=data.weight))
    start = np.concatenate([np.zeros(data.design.shape[1]), CumulativeLogit(cuts[None, :]).own, [0.0]])
    for _ in range(2):  # in units of the curvature at the start, then at the end: predictors have any unit
        scale = np.zeros((len(start), len(start)))
        free = list(range(likelihood.fixed_size))
        scale[:-1, :-1] = laplace.root(laplace.curvature(likelihood, start, free))
        maximum = search.climb(likelihood, start, scale, lengthen=False)
        start = maximum.parameters
    return maximum, scale[:-1, :-1]


def _climb(likelihood: Laplace, plain: LikelihoodMaximum, scale: Floats, terms: starts.Blocks) -> LikelihoodMaximum:
    """Climb from the model without random terms; with few responses from several starts."""
    whole = np.zeros((likelihood.parameters, likelihood.parameters))
    whole[: likelihood.fixed_size, : likelihood.fixed_size] = scale
    widths = [np.full(laplace.triangle_size(b.width), 1 / math.sqrt(len(b.levels))) for b in likelihood.blocks]
    whole[likelihood.fixed_size :, likelihood.fixed_size :] = np.diag(np.concatenate(widths))
    few = starts.is_few(float(likelihood.responses.sum()))
    ends = []
    for sd in (FIRST_SD, *(MORE_SDS if few else ())):
        likelihood.forget()
        begin = np.concatenate([plain.parameters[:-1], starts.make_factors(sd, terms)])
        ends.append(search.climb(likelihood, begin, whole))
    return search.settle_on_boundary(likelihood, max(ends, key=lambda end: end.point.loglik))


def _record(
    formula: str, data: _Data, likelihood: Laplace, maximum: LikelihoodMaximum, spread: Floats, terms: starts.Blocks
) -> MixedModel:
    p, fixed = len(data.names), likelihood.fixed_size
    random, blocks = _list_random_terms(likelihood, maximum, spread[fixed:, fixed:], terms)
    coefficients = _make_coefficients(data.names, maximum.parameters[:p], spread[:p, :p])
    density = CumulativeLogit().at(maximum.parameters[p:fixed])
    change = np.eye(fixed)
    change[p:, p:] = density.jacobian
    joint = change @ spread[:fixed, :fixed] @ change.T
    cuts = _make_coefficients(data.thresholds, density.thresholds[0], joint[p:, p:])
    equal = estimability.find_equal_columns(data.aliased, [*data.names, *data.dropped])
    return MixedModel(
        formula=formula,
        coefficients=coefficients,
        random=random,
        loglik=maximum.point.loglik,
        df=fixed + sum(laplace.triangle_size(len(names)) for _, names, _ in terms),
        n=len(data.level),
        converged=maximum.arrived,
        messages=(
            *(() if maximum.arrived else (_UNFINISHED,)),
            *sentences.describe_aliased_columns(data.dropped, equal),
            *sentences.boundary(random),
            *sentences.describe_outsized_estimates(coefficients),
        ),
        dropped=data.dropped,
        family=FAMILY,
        covariance=spread[:p, :p],
        aliased=data.aliased,
        undetermined=data.aliased,
        blocks=blocks,
        thresholds=cuts,
        joint_covariance=joint,
    )


def _make_coefficients(names: Sequence[str], values: Floats, covariance: Floats) -> tuple[Coefficient, ...]:
    errors = np.sqrt(np.diag(covariance))
    return tuple(
        raw_fits.make_coefficient(name, float(value), float(se))
        for name, value, se in zip(names, values, errors, strict=True)
    )


def _list_random_terms(
    likelihood: Laplace, maximum: LikelihoodMaximum, spread: Floats, terms: starts.Blocks
) -> tuple[tuple[RandomEffect, ...], tuple[RandomBlock, ...]]:
    if not terms:
        return (), ()
    factors = likelihood.factors(maximum.parameters[likelihood.fixed_size :])
    errors = search.compute_sd_errors(factors, spread)
    modes = search.list_modes(likelihood, maximum, factors, [(group, names) for group, names, _ in terms])
    random, blocks = [], []
    for (group, names, _), factor, error, made in zip(terms, factors, errors, modes, strict=True):
        places = np.cumsum([0, *range(len(factor), 1, -1)])  # in the triangle, column by column
        for name, sd, se in zip(names, np.linalg.norm(factor, axis=1), error[places], strict=True):
            random.append(RandomEffect(group, name, float(sd), float(se) if math.isfinite(se) else None))
        index = pd.Index(made["levels"], name=group)
        table = pd.DataFrame(made["values"], index=index, columns=list(names))
        blocks.append(RandomBlock(group, tuple(names), factor @ factor.T, table))
    return tuple(random), tuple(blocks)
