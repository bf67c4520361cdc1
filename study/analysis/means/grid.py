"""The reference grid of a model: each combination of its factors' levels, other predictors at their mean.

Means over the grid weigh each combination equally, however many rows it has (Searle, Speed & Milliken, 1980,
doi:10.1080/00031305.1980.10483031; Lenth's emmeans).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from core.errors import ForetellError
from study.analysis.means.request import MeansRequest
from study.analysis.models import formula as formulas
from study.analysis.models.records import MixedModel

MOST_CELLS = 20_000
"""Most combinations of levels in a grid; each is a row of the design."""

_NUMBER = re.compile(r"[-+]?[\d.]+")


@dataclass(frozen=True)
class Grid:
    """A reference grid.

    Attributes
    ----------
    cells
        A row for each combination of levels; offsets are 0.
    levels
        Of each factor, and of each number with two values.
    means
        Of the other predictors, at which they are held.
    offsets
        Columns that are offsets.
    formula
        The model's, of the grid's columns.
    """

    cells: pd.DataFrame
    levels: Mapping[str, Sequence[Any]]
    means: Mapping[str, float]
    offsets: Sequence[str]
    formula: str

    def check(self, names: Sequence[str]) -> None:
        """Refuse names of means that are no factor of the model.

        Raises
        ------
        ForetellError
            A name is unknown, or that of a predictor with more than two values.
        """
        for name in names:
            if name in self.means:
                raise ForetellError(
                    f"{name!r} is a continuous predictor, which has no levels to average: ask for its average effect "
                    f"instead, as in --effects {name}, or mark its column as a factor."
                )
            if name not in self.levels:
                known = ", ".join(self.levels) or "none"
                raise ForetellError(f"{name!r} is no factor of the model {self.formula!r}; its factors are: {known}.")

    def combine(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """List the combinations of the levels of some factors, the first of them changing fastest."""
        return [
            dict(zip(names, reversed(values), strict=True))
            for values in itertools.product(*(self.levels[name] for name in reversed(names)))
        ]


def build_grid(frame: pd.DataFrame, model: MixedModel) -> Grid:
    """Build the reference grid of a model from the rows that it was fitted to.

    Raises
    ------
    ForetellError
        It has too many combinations.
    """
    data, text = formulas.prepare_formula(frame, model.formula)
    offsets = formulas.list_offsets(text)
    read = " ".join([formulas.extract_fixed_effects(text), *(term.columns for term in formulas.terms(text))])
    levels: dict[str, Sequence[Any]] = {}
    means: dict[str, float] = {}
    for name in formulas.columns(data, read):
        if name in model.levels:
            levels[name] = model.levels[name]
        elif len(values := np.unique(data[name].to_numpy())) <= 2:
            levels[name] = list(values)
        else:
            means[name] = float(data[name].mean())
    if (size := prod(map(len, levels.values()))) > MOST_CELLS:
        raise ForetellError(
            f"The factors of the model {model.formula!r} have {size:,} combinations of levels, too many to average "
            f"(at most {MOST_CELLS:,}): make factors with many levels random terms."
        )
    names = list(levels)
    cells = pd.DataFrame(list(itertools.product(*levels.values())), columns=names)
    cells = cells if names else pd.DataFrame(index=[0])
    return Grid(cells.assign(**means, **dict.fromkeys(offsets, 0.0)), levels, means, offsets, text)


def label(combination: Mapping[str, Any]) -> str:
    """Name a combination of levels in contrasts: numbers with their column, ``"maps standard"``, ``"saliency1"``."""
    return " ".join(_write_level(name, value) for name, value in combination.items())


def _write_level(name: str, value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return f"{name}{value}"
    if isinstance(value, (int, float, np.number)):
        return f"{name}{float(value):g}"
    return f"{name}{value}" if _NUMBER.fullmatch(str(value)) else str(value)


def find_averaged(grid: Grid, request: MeansRequest) -> list[str]:
    """List the factors that a request averages over."""
    return [name for name in grid.levels if name not in request.names]


def find_interactions(grid: Grid, request: MeansRequest, model: MixedModel) -> list[str]:
    """List the predictors that means are averaged over, or held at the mean of, though they interact with a factor."""
    terms = [set(_list_predictors(grid, c.term)) for c in model.coefficients]
    others = [*find_averaged(grid, request), *grid.means]
    return [name for name in others if any(name in term and term & set(request.names) for term in terms)]


def _list_predictors(grid: Grid, term: str) -> list[str]:
    """List the predictors of a coefficient: ``"trial_typeright:saliency"`` has both."""
    names = sorted([*grid.levels, *grid.means], key=len, reverse=True)
    parts = [next((name for name in names if part.startswith(name)), "") for part in re.split(r":", term)]
    return [name for name in parts if name]
