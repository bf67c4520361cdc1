"""What a fit of `glmm` is read for: coefficients, random effects, covariances and outcomes, as our own records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from study.analysis.models.records import Coefficient, RandomBlock, RandomEffect
from study.analysis.models.separation import Floats, Mask


def find_outcomes(raw: Any) -> tuple[Mask, Mask]:
    """Tell whether each row holds a success, a failure; `y` is the share of successes."""
    share = np.asarray(raw.y, dtype=np.float64)
    counted = list_weights(raw) > 0
    return (share > 0) & counted, (share < 1) & counted


def list_weights(raw: Any) -> Floats:
    """Return the responses per row."""
    return np.ones(raw.nobs) if raw.weights is None else np.asarray(raw.weights, dtype=np.float64)


def list_covariances(raw: Any) -> list[tuple[str, Sequence[str], Floats]]:
    """Return the grouping, names and covariance of each set of correlated random effects; none of a fit that failed."""
    if not len(raw.varcorr):
        return []
    return [
        (group, terms, _make_symmetric(np.asarray(entries, dtype=np.float64), len(terms)))
        for (group, terms), entries in zip(raw.re_groups, raw.varcorr, strict=True)
    ]


def make_coefficient(term: str, estimate: float, se: float, df: float = math.nan) -> Coefficient:
    """Make the record of a coefficient with its test, which is t where there are degrees of freedom."""
    if not math.isfinite(se) or se <= 0:
        return Coefficient(term, estimate, None, None, None)
    z = estimate / se
    if math.isfinite(df):
        return Coefficient(term, estimate, se, z, float(2.0 * t.sf(abs(z), df)), df)
    return Coefficient(term, estimate, se, z, float(2.0 * norm.sf(abs(z))))


def list_random_effects(raw: Any) -> tuple[RandomEffect, ...]:
    """List the standard deviation of each random term."""
    known = np.asarray(raw.stddev_se, dtype=np.float64)  # empty where none are computed: linear models
    random_terms, start = [], 0
    for index, (group, terms) in enumerate(raw.re_groups):
        q = len(terms)
        diagonal = start + np.cumsum([0, *range(q, 1, -1)])  # in the triangle, column by column
        ses = known[diagonal] if len(known) else np.full(q, np.nan)
        sds = np.sqrt(np.asarray(raw.varcorr[index], dtype=np.float64)[diagonal - start])
        for term, sd, se in zip(terms, sds, ses, strict=True):
            random_terms.append(RandomEffect(group, term, float(sd), float(se) if math.isfinite(se) else None))
        start += q * (q + 1) // 2
    return tuple(random_terms)


def list_blocks(raw: Any) -> tuple[RandomBlock, ...]:
    """List the random terms in whole."""
    return tuple(
        RandomBlock(
            group=group,
            terms=tuple(terms),
            covariance=covariance,
            modes=pd.DataFrame(block["values"], index=pd.Index(block["levels"], name=group), columns=list(terms)),
        )
        for (group, terms, covariance), block in zip(list_covariances(raw), raw.ranef_blocks, strict=True)
    )


def count_covariance_parameters(raw: Any) -> int:
    """Return variances and covariances of the random terms."""
    return sum(len(entries) for entries in raw.varcorr)


def count_dispersion_parameters(raw: Any) -> int:
    """Count the residual variance, where there is one."""
    return 0 if raw.family in ("binomial", "poisson") else 1


def compute_covariance(inner: Any) -> Floats:
    """Return a covariance of all columns, 0 for those that the rows left do not tell from others."""
    covariance = np.array(inner.vcov, dtype=np.float64)
    left_out = np.asarray(inner.aliased, dtype=bool)
    covariance[left_out, :] = covariance[:, left_out] = 0.0
    return covariance


def _make_symmetric(entries: Floats, q: int) -> Floats:
    """Return a covariance from its lower triangle, column by column."""
    lower = np.zeros((q, q))
    lower.T[np.triu_indices(q)] = entries
    return lower + np.tril(lower, -1).T
