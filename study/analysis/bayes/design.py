"""The design of a Bayesian model: columns, groupings and coding are those of a fit by maximum likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import glmm
import numpy as np
import pandas as pd

from core.errors import ForetellError
from study.analysis.models import coding, estimability, sentences
from study.analysis.models import formula as formulas
from study.analysis.models.laplace import Block
from study.analysis.models.preparation import prepare
from study.analysis.models.records import Coefficient, Floats, MixedModel, RandomBlock

INTERCEPT = "(Intercept)"
LINKS = ("logit", "probit")
FAMILIES = ("binomial", "gaussian")


@dataclass(frozen=True)
class Design:
    """A binomial or Gaussian mixed model and its rows.

    Attributes
    ----------
    model
        Terms, factor levels, random terms and dropped columns; its numbers mean nothing before a fit.
    columns
        (n, p) fixed effects, as named by the model's coefficients.
    successes, responses
        (n,) counts of each row; of a Gaussian model the response, and 1.
    offset
        (n,) added to the linear predictor.
    blocks
        The random terms, in the model's order.
    messages
        How words were coded, and which columns were left out.
    location, unit
        Mean and standard deviation of a Gaussian response without its offset, in which its priors are; else 0 and 1.
        The mean is 0 without an intercept.
    """

    model: MixedModel
    columns: Floats
    successes: Floats
    responses: Floats
    offset: Floats
    blocks: Sequence[Block]
    messages: tuple[str, ...] = ()
    centre: Floats = field(init=False)
    scale: Floats = field(init=False)
    location: float = field(init=False, default=0.0)
    unit: float = field(init=False, default=1.0)

    def __post_init__(self) -> None:
        has_intercept = INTERCEPT in self.terms
        centre = self.columns.mean(axis=0) * has_intercept
        object.__setattr__(self, "centre", np.where(self.is_intercept, 0.0, centre))
        object.__setattr__(self, "scale", find_scales(self.columns))
        if self.model.family == "gaussian":
            rest = self.successes - self.offset
            object.__setattr__(self, "location", float(rest.mean()) * has_intercept)
            object.__setattr__(self, "unit", float(rest.std()))

    @property
    def terms(self) -> list[str]:
        """Names of the p coefficients."""
        return [c.term for c in self.model.coefficients]

    @property
    def is_intercept(self) -> np.ndarray:
        """(p,) which column is the intercept."""
        return np.array([term == INTERCEPT for term in self.terms])

    @property
    def effects(self) -> Floats:
        """(n, p - 1) the other columns, centred where there is an intercept, in the units of the prior."""
        return ((self.columns - self.centre) / self.scale)[:, ~self.is_intercept]


def build(
    frame: pd.DataFrame,
    formula: str,
    *,
    family: str = "binomial",
    link: str | None = None,
    weights: str | None = None,
) -> Design:
    """Build the design of a formula.

    Raises
    ------
    ForetellError
        As of `study.analysis.models.preparation.prepare`; another family, an unknown link, or weights of a Gaussian
        model; a response that never varies; a grouping with a single level.
    """
    _check(family, link, weights)
    data, text, coded = prepare(frame, formula, family, weights)
    columns, names = glmm.model_matrix(data, formulas.extract_fixed_effects(text))
    columns = np.asarray(columns, dtype=np.float64)
    kept = estimability.find_independent_columns(columns)
    terms, dropped = ([n for n, k in zip(names, kept, strict=True) if k == want] for want in (True, False))
    aliased = estimability.find_aliased_directions(columns, kept)
    blocks, random = _list_blocks(data, text)
    equal = estimability.find_equal_columns(aliased, [*terms, *dropped])
    model = MixedModel(
        formula=formula,
        coefficients=tuple(Coefficient(term, 0.0, None, None, None) for term in terms),
        random=(),
        loglik=np.nan,
        df=len(terms) + formulas.count_covariance_parameters(data, text),
        n=len(data),
        converged=True,
        dropped=tuple(dropped),
        covariance=np.zeros((len(terms), len(terms))),
        aliased=aliased,
        undetermined=aliased,
        levels=formulas.list_levels(data, text),
        blocks=tuple(random),
        link=link,
        weights=weights,
        family=family,
    )
    counts, responses = coding.read_response(data, text, weights, family)
    if family == "gaussian" and not np.ptp(counts):
        raise ForetellError(f"The response of {formula!r} never varies, so that there is nothing to explain.")
    said = (*coded, *sentences.describe_aliased_columns(tuple(dropped), equal))
    return Design(model, columns[:, kept], counts, responses, formulas.offset(data, text), blocks, said)


def _check(family: str, link: str | None, weights: str | None) -> None:
    if family not in FAMILIES:
        raise ForetellError(f"Bayesian fits are of {' or '.join(FAMILIES)} models, not of the family {family!r}.")
    if family == "binomial" and link not in (None, *LINKS):
        raise ForetellError(f"A Bayesian fit has the link {' or '.join(LINKS)}, not {link!r}.")
    if family == "gaussian" and (link, weights) != (None, None):
        raise ForetellError("A Bayesian fit of a gaussian model has no other link and no weights: leave them out.")


def _list_blocks(data: pd.DataFrame, formula: str) -> tuple[list[Block], list[RandomBlock]]:
    blocks, random = [], []
    for group, names, values in formulas.blocks(data, formula):
        codes, levels = formulas.levels(data, group)
        if len(levels) < 2:
            raise ForetellError(
                f"Column {group!r} has one level only, {levels[0]!r}, so that nothing can be learned about how levels "
                f"differ: leave the random term of {group} out."
            )
        blocks.append(Block(codes, values, levels))
        modes = pd.DataFrame(np.zeros((len(levels), len(names))), index=pd.Index(levels, name=group), columns=names)
        random.append(RandomBlock(group, tuple(names), np.eye(len(names)), modes))
    return blocks, random


def find_scales(columns: Floats) -> Floats:
    """Return (p,) the unit of each column that its prior is about: 1 of a column of 0 and 1, else its SD."""
    is_indicator = np.isin(columns, (0.0, 1.0)).all(axis=0)
    return np.where(is_indicator, 1.0, np.maximum(columns.std(axis=0), np.finfo(float).tiny))
