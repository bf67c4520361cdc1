"""Simulated studies within participants: each sees every condition, allocated as in a study."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from study.analysis.planned.contrasts import FACTORS
from study.analysis.power.truths import (
    AdditiveTruth,
    Conditions,
    Theories,
    draw_responses,
    show_factor,
    tabulate_responses,
)
from study.bundle import TRIAL_TYPES
from study.plan.orders import list_orders
from study.plan.simulated_participants import sample_mixture
from study.tasks.theory import ShownExplanations


def draw_conditions(kinds: NDArray[np.int64], count: int, people: int, rng: np.random.Generator) -> Conditions:
    """Draw in which condition each participant sees each trial (`study.participation.periods`).

    Each block of participants, one for each order, divides the trials of each type among ``count`` conditions; from
    order to order the sets move on by one.
    """
    orders = len(list_orders([str(k) for k in range(count)]))
    drawn = np.full((people, len(kinds)), -1)
    for start in range(0, people, orders):
        sets = _divide(kinds, count, rng)
        for row in range(min(orders, people - start)):
            drawn[start + row] = np.where(sets >= 0, (sets - row) % count, -1)
    return drawn


def _divide(kinds: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    sets = np.full(len(kinds), -1)
    for kind in np.unique(kinds):
        own = rng.permutation(np.flatnonzero(kinds == kind))
        kept = own[: len(own) // count * count]
        sets[kept] = np.arange(len(kept)) % count
    return sets


@dataclass(frozen=True)
class WithinTruth(AdditiveTruth):
    """Additive log-odds of participants who see every condition.

    ``person_slope_sd`` is also by how much they differ in the effect of each explanation.
    """

    def study(self, per_condition: int, rng: np.random.Generator) -> pd.DataFrame:
        """Simulate one study of so many participants, each in every condition."""
        category, kind, images = self._list_trials()
        seen = draw_conditions(kind, len(self.conditions), per_condition, rng)
        cells = np.stack([self._cells(name) for name in self.conditions])
        total = cells[seen, kind] + rng.normal(0, self.person_sd, (per_condition, 1))
        total = (
            total + rng.normal(0, self.category_sd, self.categories)[category] + rng.normal(0, self.image_sd, images)
        )
        by_type = rng.normal(0, self.person_slope_sd, (per_condition, len(TRIAL_TYPES)))
        by_type[:, 0] = 0.0  # the reference level is the intercept's
        total = total + by_type[:, kind]
        for factor in ("saliency", "examples"):
            own = rng.normal(0, self.person_slope_sd, (per_condition, 1))
            own = own + rng.normal(0, self.category_slope_sd, self.categories)[category]
            total = total + show_factor(self.conditions, factor)[seen] * (
                own + rng.normal(0, self.image_slope_sd, images)
            )
        given = draw_responses(expit(total), self.levels, rng)
        return tabulate_responses(given, seen, self.conditions, category, kind, self.levels)

    def tabulate_means(self) -> pd.DataFrame:
        """Integrate the accuracy or mean level of each cell over participants and categories."""
        both = float(np.hypot(self.category_slope_sd, self.person_slope_sd))  # variances of an explanation's effect
        return AdditiveTruth.tabulate_means(replace(self, category_slope_sd=both))

    def _list_trials(self) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """List category and type of each trial, and their number."""
        shape = (self.categories, len(TRIAL_TYPES), self.per_type)
        category, kind, _ = (axis.ravel() for axis in np.indices(shape))
        return category, kind, len(kind)


@dataclass(frozen=True)
class WithinTheories(Theories):
    """Participants who respond as their theories say, each in every condition."""

    def study(self, per_condition: int, rng: np.random.Generator) -> pd.DataFrame:
        """Simulate one study of so many participants, each in every condition."""
        _, kind = self._list_trials()
        seen = draw_conditions(kind, len(self.conditions), per_condition, rng)
        shown = [ShownExplanations(*map(bool, FACTORS[name].values())) for name in self.conditions]
        crowd = sample_mixture(self.mixture, per_condition, rng)
        p = [
            [person.p_right(self.task, t, shown[c]) if c >= 0 else 0.0 for t, c in zip(self.trials, own, strict=True)]
            for person, own in zip(crowd, seen, strict=True)
        ]
        return self._tabulate(draw_responses(np.array(p), self.levels, rng), seen, rng)


def put_within(world: AdditiveTruth | Theories) -> WithinTruth | WithinTheories:
    """Return the same world with every condition seen by each participant."""
    if isinstance(world, Theories):
        return WithinTheories(**{one.name: getattr(world, one.name) for one in fields(Theories)})
    return WithinTruth(**{one.name: getattr(world, one.name) for one in fields(AdditiveTruth)})
