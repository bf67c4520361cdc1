"""Sources of simulated studies: the paper's estimates, a pilot's, or theories of how participants respond."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from core.errors import ForetellError
from study.analysis.models import estimability, marginal
from study.analysis.models import levels as ordinal_levels
from study.analysis.models.records import Floats, MixedModel
from study.analysis.planned import nested
from study.analysis.planned.contrasts import FACTORS
from study.analysis.responses.outcome import choose_outcome
from study.bundle import TRIAL_TYPES, Trial
from study.plan.covariates import OF_RESPONSES, POSITION, TRIAL_COVARIATES
from study.plan.simulated_participants import PARTICIPANT_SD, compute_expected_accuracy, sample_mixture
from study.tasks.predict import TASK as PREDICT
from study.tasks.scale import RatingScale, make_even_scale
from study.tasks.task import Task
from study.tasks.theory import ShownExplanations

Conditions = NDArray[np.int64]
"""(participants, trials): the number of the condition in which a participant sees a trial, -1 where they do not."""

TABLE_1: Mapping[str, tuple[float, float, float]] = {
    "": (-1.06, 0.09, 4.64),
    "saliency": (1.01, -0.29, -1.71),
    "examples": (0.46, -0.24, -2.01),
    "saliency:examples": (-0.53, 0.11, 1.18),
}
"""Folke et al. (2021), Table 1: each factor's effect at adversarial incorrect, and what standard incorrect and
standard correct add to it, log-odds."""
CATEGORY_SD = 0.6
"""Between categories, crossed with trial types: with `PARTICIPANT_SD` it reproduces the paper's standard errors."""


class Truth(Protocol):
    """A world in which a study can be run."""

    @property
    def levels(self) -> RatingScale | None:
        """The scale of a task in which no response is right or wrong; None where responses are."""
        ...

    def study(self, per_condition: int, rng: np.random.Generator) -> pd.DataFrame:
        """Tabulate participant, category, item, trial_type (categorical), saliency, examples and correct, or level."""
        ...

    def tabulate_means(self) -> pd.DataFrame:
        """Tabulate condition, trial_type and the expected ``accuracy``, or ``mean_level``."""
        ...


@dataclass(frozen=True)
class AdditiveTruth:
    """Log-odds that add up: the interaction model with known coefficients.

    Attributes
    ----------
    coefficients
        As `TABLE_1`: for each product of factors its effect at the first trial type, and the others' additions.
    person_sd, category_sd
        Standard deviations of the random intercepts.
    person_slope_sd, category_slope_sd, image_slope_sd
        By how much participants differ in the effect of each trial type, and categories and images in that of each
        explanation.
    image_sd
        Standard deviation of images' random intercepts.
    conditions
        Names of the conditions run.
    categories, per_type
        Target categories, and trials of each type in each of them.
    levels
        As of `Truth`: the log-odds are then those of the latent rating.
    """

    coefficients: Mapping[str, tuple[float, float, float]]
    person_sd: float = PARTICIPANT_SD
    category_sd: float = CATEGORY_SD
    conditions: Sequence[str] = tuple(FACTORS)
    categories: int = 30
    per_type: int = 1
    person_slope_sd: float = 0.0
    category_slope_sd: float = 0.0
    image_slope_sd: float = 0.0
    image_sd: float = 0.0
    levels: RatingScale | None = None

    def scale(self, factor: float) -> AdditiveTruth:
        """Return the same world with every effect of an explanation `factor` times as large."""
        scaled = {
            name: (v[0] * factor, v[1] * factor, v[2] * factor) if name else v for name, v in self.coefficients.items()
        }
        return replace(self, coefficients=scaled)

    def with_slopes(self, sds: Mapping[str, float]) -> AdditiveTruth:
        """Return the same world with random slopes: standard deviations by participant, category and item."""
        return replace(
            self,
            person_slope_sd=sds.get("participant", self.person_slope_sd),
            category_slope_sd=sds.get("category", self.category_slope_sd),
            image_slope_sd=sds.get("item", self.image_slope_sd),
        )

    def study(self, per_condition: int, rng: np.random.Generator) -> pd.DataFrame:
        """Simulate one study; every participant responds to every trial."""
        trials = list(product(range(self.categories), range(len(TRIAL_TYPES)), range(self.per_type)))
        category, kind = np.array([t[0] for t in trials]), np.array([t[1] for t in trials])
        people = len(self.conditions) * per_condition
        fixed = np.repeat(np.stack([self._cells(name)[kind] for name in self.conditions]), per_condition, axis=0)
        own = rng.normal(0, self.person_sd, (people, 1)) + rng.normal(0, self.category_sd, self.categories)[category]
        names = np.repeat(self.conditions, per_condition)
        if self.person_slope_sd or self.category_slope_sd:
            own = own + self._slopes(names, category, kind, rng)
        if self.image_sd or self.image_slope_sd:
            own = own + self._images(names, len(trials), rng)
        seen = _assign((people, len(trials)), len(self.conditions))
        given = draw_responses(expit(fixed + own), self.levels, rng)
        return tabulate_responses(given, seen, self.conditions, category, kind, self.levels)

    def tabulate_means(self) -> pd.DataFrame:
        """Integrate the accuracy or mean level of each cell over participants and categories."""
        rows = []
        for name in self.conditions:
            of_type = np.array([0.0, 1.0, 1.0]) * self.person_slope_sd**2  # the reference level is the intercept's
            of_explanation = sum(FACTORS[name].values()) * (self.category_slope_sd**2 + self.image_slope_sd**2)
            variance = self.person_sd**2 + self.category_sd**2 + self.image_sd**2 + of_type + of_explanation
            means = _average(self._cells(name), variance, self.levels)
            rows += [(name, kind, float(mean)) for kind, mean in zip(TRIAL_TYPES, means, strict=True)]
        return pd.DataFrame(rows, columns=_list_columns(self.levels))

    def _slopes(
        self, names: NDArray[np.str_], category: NDArray[np.int64], kind: NDArray[np.int64], rng: np.random.Generator
    ) -> Floats:
        """Draw each participant's and each category's own effects (participants, trials)."""
        by_type = rng.normal(0, self.person_slope_sd, (len(names), len(TRIAL_TYPES)))
        by_type[:, 0] = 0.0  # the reference level is the intercept's
        total = by_type[:, kind]
        for factor in ("saliency", "examples"):
            shown = np.array([FACTORS[str(name)][factor] for name in names])
            total = total + shown[:, None] * rng.normal(0, self.category_slope_sd, self.categories)[category]
        return np.asarray(total, dtype=np.float64)

    def _images(self, names: NDArray[np.str_], images: int, rng: np.random.Generator) -> Floats:
        """Draw each image's own level and effects (participants, trials)."""
        total = np.tile(rng.normal(0, self.image_sd, images), (len(names), 1))
        for factor in ("saliency", "examples"):
            shown = np.array([FACTORS[str(name)][factor] for name in names])
            total = total + shown[:, None] * rng.normal(0, self.image_slope_sd, images)
        return np.asarray(total, dtype=np.float64)

    def _cells(self, condition: str) -> Floats:
        """Return (3,) log-odds of each trial type."""
        on = {name for name, flag in FACTORS[condition].items() if flag} | {""}
        effects = [np.array(v) for name, v in self.coefficients.items() if set(name.split(":")) <= on]
        total = np.sum(effects, axis=0)
        return np.asarray(total[0] + np.array([0.0, total[1], total[2]]), dtype=np.float64)


@dataclass(frozen=True)
class Theories:
    """Participants who respond to a study's trials as their theories say (`study.plan.simulated_participants`).

    ``task`` is what they are asked, ``covariates`` what the planned models name of the trials
    (`study.plan.covariates`), ``sittings`` among how many the trials are divided.
    """

    mixture: Mapping[str, float]
    trials: Sequence[Trial]
    conditions: Sequence[str] = tuple(FACTORS)
    task: Task = PREDICT
    covariates: Sequence[str] = ()
    sittings: int = 1

    @property
    def levels(self) -> RatingScale | None:
        """The scale of the task, as simulated participants use it."""
        return None if self.task.is_scored else make_even_scale(self.task.count)

    def study(self, per_condition: int, rng: np.random.Generator) -> pd.DataFrame:
        """Simulate one study; every participant responds to every trial."""
        names = np.repeat(self.conditions, per_condition)
        crowd = sample_mixture(self.mixture, len(names), rng)
        p = [
            [
                person.p_right(self.task, t, ShownExplanations(bool(factors["saliency"]), bool(factors["examples"])))
                for t in self.trials
            ]
            for person, factors in ((person, FACTORS[str(name)]) for person, name in zip(crowd, names, strict=True))
        ]
        seen = _assign((len(names), len(self.trials)), len(self.conditions))
        given = draw_responses(np.array(p), self.levels, rng)
        return self._tabulate(given, seen, rng)

    def _list_trials(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """List category and type of each trial."""
        category = pd.factorize(pd.Series([t.category for t in self.trials]))[0]
        return category, np.array([self.task.types.index(t.trial_type) for t in self.trials])

    def _tabulate(self, given: NDArray[np.int64], seen: Conditions, rng: np.random.Generator) -> pd.DataFrame:
        """Tabulate the responses, with the covariates in standard deviations as in the analysis."""
        trials = self._list_trials()
        table = tabulate_responses(given, seen, self.conditions, *trials, self.levels, self.task.types)
        for name in self.covariates:
            if name in OF_RESPONSES:
                parts = 0 if name == POSITION else self.sittings
                values = table.groupby("participant", observed=True)["item"].transform(
                    lambda own, parts=parts: rng.permutation(len(own)) * (parts or len(own)) // len(own)
                )
            else:
                values = table["item"].cat.codes.map(dict(enumerate(map(TRIAL_COVARIATES[name].read, self.trials))))
            numbers = values.astype(np.float64)
            table[name] = (numbers - numbers.mean()) / numbers.std()
        return table

    def tabulate_means(self) -> pd.DataFrame:
        """Average what the mixture implies over the trials of a type, by quadrature over participants."""
        mixture = {name: weight for name, weight in self.mixture.items() if weight > 0}
        rows = []
        for name, kind in product(self.conditions, self.task.types):
            shown = ShownExplanations(*map(bool, FACTORS[name].values()))
            trials = [t for t in self.trials if t.trial_type == kind]
            each = [compute_expected_accuracy(mixture, t, shown, task=self.task, levels=self.levels) for t in trials]
            rows.append((name, kind, float(np.mean(each)) if each else float("nan")))
        return pd.DataFrame(rows, columns=_list_columns(self.levels))


def from_pilot(model: MixedModel, conditions: Sequence[str], categories: int, per_type: int) -> AdditiveTruth:
    """Return a pilot's interaction model as the truth, with its thresholds where it is ordinal.

    Raises
    ------
    ForetellError
        The pilot leaves a cell of the study without a finite estimate.
    """
    _refuse_undetermined(model, conditions)
    # Of columns that the pilot cannot tell apart one carries the whole effect; an ordinal model has no intercept.
    known = {c.term: c.estimate for c in model.coefficients}
    others = [f"trial_type{kind}" for kind in TRIAL_TYPES[1:]]
    truths = {}
    for name in TABLE_1:
        terms = [name or "(Intercept)", *(f"{kind}:{name}" if name else kind for kind in others)]
        first, second, third = (known.get(term, 0.0) for term in terms)
        truths[name] = (first, second, third)
    sd = {effect.group: effect.sd for effect in model.random if effect.term == "(Intercept)"}
    levels = None
    if model.thresholds:
        levels = RatingScale(tuple(ordinal_levels.list_values(model)), tuple(c.estimate for c in model.thresholds))
    return AdditiveTruth(truths, sd["participant"], sd["category"], conditions, categories, per_type, levels=levels)


def _refuse_undetermined(model: MixedModel, conditions: Sequence[str]) -> None:
    cells = [{"trial_type": kind, **FACTORS[name]} for name, kind in product(conditions, TRIAL_TYPES)]
    seen = [cell for cell in cells if cell["trial_type"] in model.levels["trial_type"]]
    weights = model.design_with_dropped(pd.DataFrame(seen))
    lost = [cell for cell in cells if cell not in seen]
    lost += [cell for cell, known in zip(seen, estimability.is_estimable(weights, model), strict=True) if not known]
    if lost:
        raise ForetellError(
            f"The pilot does not determine {nested.cell_name(lost[0])}: use the paper's estimates or simulated "
            "participants."
        )


def _assign(shape: tuple[int, ...], count: int) -> Conditions:
    """Assign as many participants to each of ``count`` conditions, in which they see every trial."""
    people = np.repeat(np.arange(count), shape[0] // count)
    return np.broadcast_to(people[:, None], shape)


def show_factor(conditions: Sequence[str], factor: str) -> Floats:
    """Return which of some conditions show an explanation, 1 or 0."""
    return np.array([FACTORS[name][factor] for name in conditions], dtype=np.float64)


def _list_columns(levels: RatingScale | None) -> list[str]:
    """List the columns of `Truth.tabulate_means`."""
    return ["condition", "trial_type", choose_outcome(is_scored=levels is None).mean]


def _average(log_odds: Floats, variance: Floats, levels: RatingScale | None) -> Floats:
    """Average the probability of correct responses (n,), or the mean level, over normal random effects."""
    if levels is None:
        return marginal.average_probability(log_odds, variance)[0]
    return ordinal_levels.average(log_odds, variance, levels.values, levels.thresholds)[0]


def draw_responses(p: Floats, levels: RatingScale | None, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw responses (participants, trials): 1 where correct, with probability ``p``; or levels (`RatingScale`)."""
    drawn = rng.random(p.shape)
    return (drawn < p).astype(np.int64) if levels is None else levels.choose(p, drawn)


def tabulate_responses(
    given: NDArray[np.int64],
    seen: Conditions,
    conditions: Sequence[str],
    category: NDArray[np.int64],
    kind: NDArray[np.int64],
    levels: RatingScale | None,
    types: Sequence[str] = TRIAL_TYPES,
) -> pd.DataFrame:
    """Tabulate the responses to the trials that participants see, as `Truth.study` does; ``kind`` indexes ``types``."""
    person, trial = np.nonzero(seen >= 0)
    condition = seen[person, trial]
    return pd.DataFrame(
        {
            "participant": pd.Categorical.from_codes(person, [f"p{i:05d}" for i in range(len(seen))]),
            "category": pd.Categorical.from_codes(category[trial], [f"c{j:04d}" for j in range(category.max() + 1)]),
            "item": pd.Categorical.from_codes(trial, [f"i{k:05d}" for k in range(len(kind))]),
            "trial_type": pd.Categorical.from_codes(kind[trial], list(types)),
            **{name: show_factor(conditions, name)[condition].astype(np.int64) for name in ("saliency", "examples")},
            choose_outcome(is_scored=levels is None).column: given[person, trial],
        }
    )
