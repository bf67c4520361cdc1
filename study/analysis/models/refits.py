"""Refit a fitted model without some of its rows, or to other responses, from its own estimates.

The removed rows stay in place with a prior weight of 0, so that no design is computed again. The search starts at the
estimates from all rows, in units of their covariance, and arrives after some eight evaluations. A single Newton step
from there (Williams, 1987, doi:10.2307/2347550) would miss by up to a tenth of a standard error.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from study.analysis.models import denominators, laplace, mixed, search, starts
from study.analysis.models.formula import NOTHING
from study.analysis.models.laplace import Laplace
from study.analysis.models.raw_fits import make_coefficient
from study.analysis.models.records import Floats, MixedModel
from study.analysis.models.separation import Mask
from study.analysis.models.threads import one_blas_thread

_STEP = 1e-4
"""Step of the difference quotients of the gradient, which is exact."""
_FLAT = 1e-3
"""Smallest information on a variance that counts, as in `laplace.curvature`."""
_OPEN = 1e-7
"""Relative size below which a direction of the coefficients is open."""


class Refits:
    """The fits of one model to parts of its rows, with the same fixed and random effects.

    Parameters
    ----------
    frame
        The rows the model was fitted to, one response each.
    model
        Binomial, fitted by the Laplace approximation.

    Raises
    ------
    ForetellError
        The likelihood of such a model is not known, or it has too many random effects.
    """

    @one_blas_thread()
    def __init__(self, frame: pd.DataFrame, model: MixedModel) -> None:
        self._frame, self._model = frame, model
        self._likelihood, self._parameters = laplace.of(frame, model)
        self._start, self._scale = self._prepare_search()
        _, self._cells = np.unique(model.design(frame), axis=0, return_inverse=True)
        self._patterns = self._find_patterns(None)

    @one_blas_thread()
    def without(self, rows: Mask, *, errors: bool = True) -> MixedModel:
        """Return the model fitted without `rows` (n,).

        Where the other rows determine other coefficients than all of them do, because a cell of the design is empty or
        separated, and where they are so few that the likelihood can have several maxima, the whole fit is made again.

        Parameters
        ----------
        errors
            Whether standard errors and degrees of freedom are needed; without them there are none.

        Raises
        ------
        ForetellError
            No fit was possible.
        """
        kept = ~rows
        if starts.is_few(kept.sum()) or not np.array_equal(self._find_patterns(kept), self._patterns):
            return mixed.fit(
                self._frame[kept],
                self._model.formula,
                link=self._model.link,
                near=self._model.effects,
                has_df=bool(self._model.parts),
            )
        likelihood = copy.copy(self._likelihood)
        likelihood.successes, likelihood.responses = likelihood.successes * kept, likelihood.responses * kept
        maximum = search.climb(likelihood, self._start, self._scale, lengthen=False)
        if not errors:
            return self._record(maximum, np.zeros_like(self._model.covariance), int(kept.sum()))
        parts = denominators.split_variance(likelihood, maximum.point)
        covariance = _find_covariance(likelihood, maximum)
        made = self._record(maximum, covariance, int(kept.sum()))
        return replace(made, parts=parts) if self._model.parts else made

    @one_blas_thread()
    def maximise(self, correct: Floats) -> float:
        """Return the log-likelihood of the model fitted to other responses `correct` (n,), 1 or 0, in the same rows.

        Where they determine other coefficients than the fitted ones, or are few, the whole fit is made again.

        Raises
        ------
        ForetellError
            No fit was possible.
        """
        likelihood = copy.copy(self._likelihood)
        likelihood.successes = correct
        if starts.is_few(len(correct)) or not np.array_equal(self._find_patterns(None, correct), self._patterns):
            frame = self._frame.assign(correct=correct.astype(np.int64))
            return mixed.fit(frame, self._model.formula, link=self._model.link, near=self._model.effects).loglik
        return search.climb(likelihood, self._start, self._scale, lengthen=False).point.loglik

    def _prepare_search(self) -> tuple[Floats, Floats]:
        """Return where to start, with every standard deviation away from 0, and the scale of each direction."""
        p, start = self._likelihood.design.shape[1], self._parameters.copy()
        free = _list_free(start, p)
        scale = np.diag(np.ones(len(start)))
        at = p
        for block in self._likelihood.blocks:
            size = laplace.triangle_size(block.width)
            scale[at : at + size, at : at + size] /= np.sqrt(len(block.levels))
            rows, columns = np.triu_indices(block.width)
            diagonal = at + np.flatnonzero(rows == columns)
            start[diagonal] = np.maximum(start[diagonal], search.SMALL)
            at += size
        spread = laplace.curvature(self._likelihood, self._parameters, free)
        scale[np.ix_(free, free)] = laplace.root(spread)
        return start, scale

    def _find_patterns(self, kept: Mask | None, correct: Floats | None = None) -> NDArray[np.int64]:
        """Find which cells of the fixed effects hold correct and incorrect responses: of the rows kept, or all."""
        hits, counts = self._likelihood.successes if correct is None else correct, self._likelihood.responses
        rows = np.ones(len(hits), dtype=bool) if kept is None else kept
        right = np.bincount(self._cells, (hits > 0) & rows) > 0
        wrong = np.bincount(self._cells, (hits < counts) & rows) > 0
        return right + 2 * wrong

    def _record(self, maximum: search.LikelihoodMaximum, covariance: Floats, n: int) -> MixedModel:
        model, p = self._model, len(covariance)
        factors = self._likelihood.factors(maximum.parameters[p:])
        blocks = tuple(
            replace(block, covariance=factor @ factor.T, modes=block.modes.iloc[:0])
            for block, factor in zip(model.blocks, factors, strict=True)
        )
        sds = {
            (block.group, term): float(np.sqrt(block.covariance[k, k]))
            for block in blocks
            for k, term in enumerate(block.terms)
        }
        errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        return replace(
            model,
            coefficients=tuple(
                make_coefficient(one.term, float(estimate), float(se) if one.se is not None else np.nan)
                for one, estimate, se in zip(model.coefficients, maximum.parameters, errors, strict=False)
            ),
            random=tuple(replace(one, sd=sds[one.group, one.term], se=None) for one in model.random),
            loglik=maximum.point.loglik,
            n=n,
            converged=maximum.arrived,
            covariance=covariance,
            blocks=blocks,
        )


def _list_free(parameters: Floats, fixed: int) -> list[int]:
    """List the parameters that are not at a boundary of 0."""
    return [k for k in range(len(parameters)) if k < fixed or abs(parameters[k]) > NOTHING]


def _find_covariance(likelihood: Laplace, maximum: search.LikelihoodMaximum) -> Floats:
    """Return the coefficients' covariance from the observed information, which differences of the gradient give."""
    p = likelihood.design.shape[1]
    free = _list_free(maximum.parameters, p)
    rows = []
    for k in free:
        moved = maximum.parameters.copy()
        moved[k] += _STEP
        rows.append((maximum.point.gradient - likelihood.at(moved).gradient)[free] / _STEP)
    information = np.stack(rows)
    information = (information + information.T) / 2
    values, vectors = np.linalg.eigh(information[p:, p:])
    turned = vectors.T @ information[p:, :p]
    of_coefficients = information[:p, :p] - turned.T @ (turned / np.maximum(values, _FLAT)[:, None])
    return np.asarray(np.linalg.pinv(of_coefficients, rcond=_OPEN, hermitian=True))
