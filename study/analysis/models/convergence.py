"""Convergence: whether a fit is at the maximum of its likelihood, checked independently of the optimiser.

lme4 looks at the gradient by finite differences, against a fixed bound, and so warns of good fits: of the paper's
design, with its default optimiser. Here the exact gradient is measured in log-likelihood: the Newton decrement
g'Cg / 2 is what one more step would gain (Boyd & Vandenberghe, 2004, section 9.5.1).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from study.analysis.models import laplace, random_effects
from study.analysis.models.records import MixedModel
from study.analysis.models.sentences import words

GAIN = 1e-3
"""Log-likelihood still to be gained from which a fit does not count as finished: a likelihood ratio is then off in
its third decimal."""
FEW = 6
"""Levels of a grouping below which its standard deviation is very imprecise (Bolker et al., 2009,
doi:10.1016/j.tree.2008.10.008: five or six)."""
_LARGEST = 2000
"""Random effects up to which the check takes no time to speak of."""


def check_convergence(frame: pd.DataFrame, model: MixedModel) -> tuple[str, ...]:
    """Describe each problem of the fit in a sentence; empty if there is none."""
    return (*_check_search(frame, model), *_singular(model), *_few(model))


def gain(frame: pd.DataFrame, model: MixedModel) -> float:
    """Compute the log-likelihood that one Newton step from the estimates would add, to second order."""
    likelihood, parameters = laplace.of(frame, model)
    gradient = likelihood.at(parameters).gradient
    finite = np.array([c.term not in model.diverging for c in model.coefficients], dtype=bool)
    by_coefficients = gradient[: len(finite)][finite]
    total = float(by_coefficients @ model.covariance[np.ix_(finite, finite)] @ by_coefficients)
    if all(len(block.terms) == 1 for block in model.blocks):  # then each factor is a standard deviation
        total += sum(
            (g * r.se) ** 2
            for g, r in zip(gradient[likelihood.fixed_size :], model.random, strict=True)
            if r.se is not None
        )
    return total / 2


def _check_search(frame: pd.DataFrame, model: MixedModel) -> tuple[str, ...]:
    effects = sum(block.modes.size for block in model.blocks)
    if not model.is_laplace or not 0 < effects <= _LARGEST:
        return ()
    missing = gain(frame, model)
    if missing < GAIN:
        return ()
    return (
        f"The fit did not converge: one more Newton step would add {missing:.2g} to the log-likelihood. Do not rely on "
        "these numbers; simplify the random effects or rescale the predictors.",
    )


def _singular(model: MixedModel) -> tuple[str, ...]:
    """Report a correlation of 1 or -1, or effects that repeat each other; a zero variance is reported elsewhere."""
    sentences = []
    for block in model.blocks:
        correlations = block.correlations
        if len(block.terms) < 2 or not np.isfinite(correlations).all():
            continue
        if np.linalg.eigvalsh(correlations).min() < random_effects.EDGE:
            sentences.append(
                f"Boundary (singular) fit: {' and '.join(map(words, block.terms))} between levels of {block.group} "
                "are estimated as perfectly correlated. The data do not support so many random effects; leave out a "
                "slope."
            )
    return tuple(sentences)


def _few(model: MixedModel) -> tuple[str, ...]:
    return tuple(
        f"Only {count} level{'' if count == 1 else 's'} of {block.group}: a standard deviation between so few is very "
        f"imprecise. Report its interval, or make {block.group} a fixed effect."
        for block in model.blocks
        if (count := len(block.modes)) < FEW
    )
