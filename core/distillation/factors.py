"""Named properties of images as the features of a tree, and a tree's rules in terms of these properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.distillation.tree import Leaf


@dataclass(frozen=True)
class FactorColumn:
    """A feature: whether a factor has a value or, with an empty value, a number."""

    factor: str
    value: str = ""


@dataclass(frozen=True)
class Clause:
    """What a rule says of one factor.

    Attributes
    ----------
    values
        Values of the factor; none for a number.
    holds
        Whether it has one of these values, or none of them.
    low, high
        The range of a number: above `low` and at most `high`.
    """

    factor: str
    values: tuple[str, ...] = ()
    holds: bool = True
    low: float = -np.inf
    high: float = np.inf


def encode_factors(known: Mapping[str, Sequence[str]]) -> tuple[NDArray[np.float64], tuple[FactorColumn, ...]]:
    """Return one feature (N, D) of 0 and 1 for each value of each factor, and what each column is."""
    columns, features = [], []
    for factor, values in known.items():
        for value in sorted(set(values)):
            columns.append(FactorColumn(factor, value))
            features.append([float(one == value) for one in values])
    return np.array(features, dtype=np.float64).T, tuple(columns)


def simplify_rule(leaf: Leaf, columns: Sequence[FactorColumn]) -> tuple[Clause, ...]:
    """Return what a rule says of each factor, in the order in which the tree asks.

    Bounds of a number are merged. Of the values that a factor may have or may not have, the shorter list is given.
    """
    values = {one.factor: [each.value for each in columns if each.factor == one.factor] for one in columns}
    clauses: dict[str, Clause] = {}
    for step in leaf.path:
        column = columns[step.feature]
        before = clauses.get(column.factor, Clause(column.factor, holds=False))
        if not column.value:
            low, high = (max(before.low, step.threshold), before.high) if step.above else (before.low, step.threshold)
            clauses[column.factor] = Clause(column.factor, low=low, high=high)
        else:
            left = [column.value] if step.above else [one for one in values[column.factor] if one != column.value]
            values[column.factor] = left
            clauses[column.factor] = _choose_shorter(column.factor, left, columns)
    return tuple(clauses.values())


def _choose_shorter(factor: str, left: Sequence[str], columns: Sequence[FactorColumn]) -> Clause:
    excluded = [one.value for one in columns if one.factor == factor and one.value not in left]
    if len(left) <= len(excluded):
        return Clause(factor, tuple(left))
    return Clause(factor, tuple(excluded), holds=False)
