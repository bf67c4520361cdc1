"""The matrix H of a mixed model's random effects, whose largest grouping makes it an arrow.

Rows of different participants share no participant's effect. With the effects of the largest grouping first, H =
[[A, B], [B', D]] has an A of small blocks, one for each level, and its factor needs only those and the Schur complement
S = D - B'A^-1 B, as large as the other effects are many (Bates et al., 2015, section 5, find the same by a sparse
Cholesky factor). A study of 160 participants with slopes of trial types has 480 effects in A and some hundred in D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Where each row's random effects are.

    Attributes
    ----------
    at
        (n, k) places of each row's effects among all of them.
    codes
        (n,) level of the largest grouping.
    own
        Which of the k columns belong to it.
    size
        Random effects in all.
    values
        (n, k) the columns before they are multiplied by the factors: rows that share those of the other groupings
        share their products too.
    """

    at: Integers
    codes: Integers
    own: Sequence[int]
    size: int
    values: Floats
    inner: Integers = field(init=False)
    outer: Integers = field(init=False)
    rest_at: Integers = field(init=False)
    first: Integers = field(init=False)
    alike: Integers = field(init=False)

    def __post_init__(self) -> None:
        inner = np.zeros((int(self.codes.max()) + 1, len(self.own)), dtype=np.int64)
        inner[self.codes] = self.at[:, self.own]
        outer = np.setdiff1d(np.arange(self.size), inner.ravel())
        place = np.zeros(self.size, dtype=np.int64)
        place[outer] = np.arange(len(outer))
        rest_at = place[np.take(self.at, self.rest, axis=1)]
        first, alike = _find_equal_rows(np.hstack([rest_at, np.take(self.values, self.rest, axis=1)]))
        made = {"inner": inner, "outer": outer, "rest_at": rest_at, "first": first, "alike": alike}
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @cached_property
    def rest(self) -> list[int]:
        """The columns of the other groupings."""
        return [k for k in range(self.at.shape[1]) if k not in set(self.own)]

    @cached_property
    def _cells(self) -> tuple[Integers, Integers, Integers]:
        """Where the products of a row's columns are added in A, B and D."""
        m, r = self.inner.shape[1], len(self.outer)
        first = self.codes[:, None] * m + np.arange(m)
        in_a = first[:, :, None] * m + np.arange(m)
        in_b = first[:, :, None] * r + self.rest_at[:, None, :]
        some = self.rest_at[self.first]
        in_d = some[:, :, None] * r + some[:, None, :]
        return in_a.ravel(), in_b.ravel(), in_d.ravel()

    def spread_out(self, values: Floats, effects: Floats) -> Floats:
        """Return (n,) Z u: each row's values times its effects."""
        return np.asarray(np.einsum("nk,nk->n", values, effects[self.at]))

    def collect(self, values: Floats, rows: Floats) -> Floats:
        """Return (q,) Z'x: for each effect the rows' x times their values."""
        sums = np.bincount(self.at.ravel(), (values * rows[:, None]).ravel(), minlength=self.size)
        return np.asarray(sums, dtype=np.float64)

    def factor(self, values: Floats, weight: Floats) -> Arrow:
        """Factor H = I + Z'WZ.

        Parameters
        ----------
        values
            (n, k) each row's nonzero columns of Z.
        weight
            (n,) diagonal of W.
        """
        own, rest = np.take(values, self.own, axis=1), np.take(values, self.rest, axis=1)
        weighted = own * weight[:, None]
        levels, m = self.inner.shape
        r = len(self.outer)
        in_a, in_b, in_d = self._cells
        a = _add(in_a, weighted[:, :, None] * own[:, None, :], (levels, m, m)) + np.eye(m)
        b = _add(in_b, weighted[:, :, None] * rest[:, None, :], (levels * m, r))
        some, total = rest[self.first], np.bincount(self.alike, weight)
        d = _add(in_d, (some * total[:, None])[:, :, None] * some[:, None, :], (r, r)) + np.eye(r)
        return Arrow(self, a, b, d)


def _find_equal_rows(table: Floats) -> tuple[Integers, Integers]:
    """Return the first of each kind of row, and each row's kind."""
    if not table.shape[1]:
        return np.zeros(1, dtype=np.int64), np.zeros(len(table), dtype=np.int64)
    _, first, alike = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return first, np.asarray(alike).ravel()


def _add(places: Integers, products: Floats, shape: tuple[int, ...]) -> Floats:
    return np.bincount(places, products.ravel(), minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


@dataclass(frozen=True)
class Arrow:
    """H, factored.

    Attributes
    ----------
    a
        (levels, m, m) blocks of the largest grouping.
    b
        (levels * m, r) between it and the others.
    d
        (r, r) of the others.
    """

    layout: Layout
    a: Floats
    b: Floats
    d: Floats

    @cached_property
    def _inverse_a(self) -> Floats:
        return np.asarray(np.linalg.inv(self.a), dtype=np.float64)

    @cached_property
    def _reduced(self) -> Floats:
        """(levels * m, r) A^-1 B."""
        blocks = self._inverse_a @ self.b.reshape(*self.a.shape[:2], -1)
        return np.asarray(blocks.reshape(self.b.shape))

    @cached_property
    def _schur(self) -> tuple[Floats, bool]:
        factor, lower = cho_factor(self.d - self.b.T @ self._reduced, lower=True, check_finite=False)
        return factor, lower

    @property
    def half_log_determinant(self) -> float:
        """Half of log det(H)."""
        blocks = np.linalg.slogdet(self.a)[1]
        return 0.5 * float(np.sum(blocks)) + float(np.sum(np.log(np.diag(self._schur[0]))))

    def solve(self, right: Floats) -> Floats:
        """Return H^-1 x."""
        layout = self.layout
        own = np.einsum("gab,gb->ga", self._inverse_a, right[layout.inner]).ravel()
        rest = cho_solve(self._schur, right[layout.outer] - self._reduced.T @ right[layout.inner].ravel())
        solution = np.empty(layout.size)
        solution[layout.inner.ravel()] = own - self._reduced @ rest
        solution[layout.outer] = rest
        return solution

    def rows_times_inverse(self, values: Floats) -> Floats:
        """Return (n, k) Z H^-1 at the k columns of each row that are not zero."""
        layout = self.layout
        levels, m = layout.inner.shape
        inverse = cho_solve(self._schur, np.eye(len(layout.outer)), check_finite=False)
        across = self._reduced @ inverse
        blocks = across.reshape(levels, m, -1) @ self._reduced.reshape(levels, m, -1).transpose(0, 2, 1)
        own, rest = np.take(values, layout.own, axis=1), np.take(values, layout.rest, axis=1)
        first = (layout.codes[:, None] * m + np.arange(m))[:, :, None]
        between = across[first, layout.rest_at[:, None, :]]
        some, some_at = rest[layout.first], layout.rest_at[layout.first]
        among = np.einsum("ni,nij->nj", some, inverse[some_at[:, :, None], some_at[:, None, :]])[layout.alike]
        made = np.empty_like(values)
        made[:, layout.own] = np.einsum("na,nab->nb", own, (self._inverse_a + blocks)[layout.codes])
        made[:, layout.own] -= np.einsum("nj,naj->na", rest, between)
        made[:, layout.rest] = among - np.einsum("na,naj->nj", own, between)
        return made

    def invert(self) -> Floats:
        """Return (q, q) H^-1 in whole."""
        return np.column_stack([self.solve(column) for column in np.eye(self.layout.size)])
