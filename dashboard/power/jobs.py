"""How many people a study needs: what its simulated studies are drawn from, and the curve, for page and command."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import TypeVar

import pandas as pd

from core.errors import ForetellError
from core.types import Progress
from dashboard.shared.keys import digest
from dashboard.shared.tasks import Task
from study.analysis import formula as formulas
from study.analysis import nested, power, random_effects
from study.analysis.responses import Responses
from study.analysis.sentences import describe_hypothesis
from study.analysis.truths import TABLE_1, AdditiveTruth, Theories, Truth, from_pilot
from study.bundle import TRIAL_TYPES
from study.plan.config import StudyConfig
from study.workspace import parallel
from study.workspace.workspace import bundle_named, home

Number = TypeVar("Number", int, float)
LARGEST_MULTIPLE = 10.0
MOST_PARTICIPANTS = 2000
TRIAL = 20
"""Participants per condition, at most, of the simulated study that is timed: time grows in proportion to them."""
SLOPES = {
    "participant": "participants differ in the effect of each trial type",
    "category": "categories differ in the effect of each explanation",
}
"""What a random slope by each grouping is one of."""
LARGEST_SLOPE = 5.0
_timed: dict[str, float] = {}
"""Seconds of a simulated study of each design, by what it depends on."""


@dataclass(frozen=True)
class PowerAnalysis:
    """What is to be found out.

    Attributes
    ----------
    pilot
        Responses whose interaction model is taken for the truth.
    mixture
        Weights of simulated people instead; with neither the paper's estimates are the truth.
    sizes, effects
        Participants per condition, and multiples of the assumed effects of explanations.
    studies
        Simulated for each of both.
    slope_sds
        Assumed standard deviations of random slopes by grouping, as of `SLOPES`.
    """

    study: StudyConfig
    sizes: tuple[int, ...]
    studies: int = 200
    effects: tuple[float, ...] = (1.0,)
    pilot: Responses | None = None
    mixture: Mapping[str, float] | None = None
    seed: int = 0
    slope_sds: Mapping[str, float] = field(default_factory=dict)

    def truth(self) -> Truth:
        """Return the model to simulate from.

        Raises
        ------
        ForetellError
            The pilot does not determine it, or the study of simulated participants is not built.
        """
        if self.mixture is not None and self.slope_sds:
            raise ForetellError(
                "Simulated participants follow their theories and have no random slopes: assume slopes with the "
                "paper's estimates or a pilot."
            )
        world = self._make_truth()
        return world.with_slopes(self.slope_sds) if isinstance(world, AdditiveTruth) else world

    def _make_truth(self) -> Truth:
        study = self.study
        conditions, chosen, per_type = study.conditions, study.trials.categories, study.trials.per_type
        if self.mixture is not None:
            trials = bundle_named(home(), study.study.name).manifest.trials
            return Theories(self.mixture, trials, conditions)
        categories = chosen if isinstance(chosen, int) else len(chosen)
        if self.pilot is None:
            return AdditiveTruth(TABLE_1, conditions=conditions, categories=categories, per_type=per_type)
        fixed = {"interaction": nested.FIXED["interaction"]}
        model = nested.analyze(self.pilot, fixed=fixed).models["interaction"]
        return from_pilot(model, conditions, categories, per_type)

    def curve(self, progress: Progress, workers: int | None = None, engine: str = "processes") -> pd.DataFrame:
        """Compute power by the study's own plan, as `study.analysis.power.curve` does."""
        return power.curve(
            self.truth(),
            self.sizes,
            studies=self.studies,
            seed=self.seed,
            alpha=self.study.plan.alpha,
            effects=self.effects,
            models=self.study.plan.models,
            workers=workers,
            engine=engine,
            progress=progress,
        )

    def task(self) -> Task:
        """Return the task that computes the curve in the background on every core."""
        given = json.dumps([self.sizes, self.studies, self.effects, self.seed])
        return Task(digest("power", given, *self._world()), self.curve, self.estimate)

    def estimate(self, workers: int | None = None) -> float:
        """Estimate the seconds of the curve, from timings of one simulated study and of the start of a process."""
        per_condition = min(max(self.sizes), TRIAL)
        key = digest("trial", str(per_condition), *self._world())
        if key not in _timed:
            _timed[key] = power.time_study(self.truth(), self.study.plan.models, per_condition)
        repeats = self.studies * len(self.effects)
        count = parallel.count_workers(repeats * len(self.sizes), workers)
        fitting = repeats * sum(self.sizes) / per_condition * _timed[key] / count
        return fitting + (_time_start() if count > 1 else 0.0)

    @property
    def notes(self) -> list[str]:
        """Describe what is assumed, and the slopes of the design that the planned models leave out."""
        study = self.study
        chosen = study.trials.categories
        names = map(str, range(chosen)) if isinstance(chosen, int) else chosen
        trials = list(product(names, TRIAL_TYPES))
        omission = random_effects.planned_omission(study.plan.models, study.conditions, trials)
        return [note for note in (self.assumptions, omission) if note]

    @property
    def assumptions(self) -> str | None:
        """Describe the assumed random slopes, and those that the planned models leave out."""
        assumed = {group: sd for group, sd in self.slope_sds.items() if sd}
        if not assumed:
            return None
        listed = "; ".join(f"{SLOPES[group]} (standard deviation {sd:g} log-odds)" for group, sd in assumed.items())
        random = f"y ~ {random_effects.split(self.study.plan.models)[1]}"
        fitted = {term.group for term in formulas.terms(random) if term.columns != "1"}
        left = [group for group in assumed if group not in fitted]
        if not left:
            return f"Assumed: {listed}."
        return (
            f"Assumed: {listed}. The planned models have no random slopes by {' and '.join(left)}: without a true "
            "effect their tests reject too often, and power is overstated."
        )

    def _world(self) -> tuple[str, str, str, str]:
        """Return what the simulated model and its analysis depend on."""
        people = None if self.mixture is None else sorted(self.mixture.items())
        pilot = "" if self.pilot is None else self.pilot.sha256
        built = "" if self.mixture is None else bundle_named(home(), self.study.study.name).study_hash
        return self.study.digest, json.dumps([people, sorted(self.slope_sds.items())]), pilot, built


@cache
def _time_start() -> float:
    """Measure the start of a process, once: all processes of a curve start at the same time."""
    return parallel.measure_start(power.start)


def parse_numbers(text: str, kind: type[Number], what: str) -> tuple[Number, ...]:
    """Parse numbers separated by commas.

    Raises
    ------
    ForetellError
        Something else.
    """
    try:
        numbers = tuple(kind(part) for part in text.split(","))
    except ValueError:
        raise ForetellError(f"{what} {text!r} is not a list of numbers like 10,20,40.") from None
    if not all(math.isfinite(value) and value >= 0 for value in numbers):
        raise ForetellError(f"{what} {text!r}: give numbers of 0 or more, with commas between them.")
    return numbers


def parse_sizes(text: str, what: str) -> tuple[int, ...]:
    """Parse participants per condition.

    Raises
    ------
    ForetellError
        No whole numbers from 2 to `MOST_PARTICIPANTS`.
    """
    sizes = parse_numbers(text, int, what)
    if not 2 <= min(sizes) <= max(sizes) <= MOST_PARTICIPANTS:
        raise ForetellError(f"{what} {text!r}: give between 2 and {MOST_PARTICIPANTS:,} participants per condition.")
    return sizes


def parse_pay(pay: float, what: str) -> float:
    """Return the pay, if it is an amount.

    Raises
    ------
    ForetellError
        A negative amount, or none.
    """
    if not (math.isfinite(pay) and pay >= 0):
        raise ForetellError(f"{what} {pay:g}: give an amount of 0 or more.")
    return pay


def slopes(given: Mapping[str, str], what: str) -> dict[str, float]:
    """Parse standard deviations of random slopes by grouping.

    Raises
    ------
    ForetellError
        Another name than those of `SLOPES`, or no number from 0 to `LARGEST_SLOPE`.
    """
    sds = {}
    for group, text in given.items():
        if group not in SLOPES:
            raise ForetellError(f"{what} {group!r}: give one of {', '.join(SLOPES)}.")
        (sds[group],) = parse_numbers(text, float, f"{what} {group}") if "," not in text else (LARGEST_SLOPE + 1,)
        if sds[group] > LARGEST_SLOPE:
            raise ForetellError(f"{what} {group}={text}: give one number from 0 to {LARGEST_SLOPE:g} (log-odds).")
    return sds


def parse_multiples(text: str, what: str) -> tuple[float, ...]:
    """Parse multiples of the assumed effects.

    Raises
    ------
    ForetellError
        No numbers from 0 to `LARGEST_MULTIPLE`.
    """
    multiples = parse_numbers(text, float, what)
    if max(multiples) > LARGEST_MULTIPLE:
        raise ForetellError(
            f"{what} {text!r}: effects more than {LARGEST_MULTIPLE:g} times as large as assumed make every response "
            "the same; give smaller ones."
        )
    return multiples


def describe_sample_sizes(table: pd.DataFrame, conditions: int, pay: float, currency: str) -> Sequence[str]:
    """Describe, for each test and effect, the smallest size whose whole interval of power is above the target."""
    rows = power.enough(table).itertuples()
    return [_enough(row.test, row.effect, row.per_condition, conditions, pay, currency) for row in rows]


def tabulate_sample_sizes(table: pd.DataFrame, conditions: int, pay: float, currency: str) -> pd.DataFrame:
    """Tabulate, for each test and effect, the smallest size whose whole interval of power is above the target."""
    needed = power.enough(table)
    people, smallest = needed["per_condition"] * conditions, float(table["per_condition"].min())
    columns = {
        "To show that": [describe_hypothesis(*test.split(" - ", 1)) for test in needed["test"]],
        "Test": needed["test"].map(power.name_test),
        "Effects": needed["effect"].map("× {:g}".format),
        "Participants per condition": _write_counts(needed["per_condition"], smallest),
        "In all": _write_counts(people, smallest * conditions),
    }
    if pay:
        columns[f"Pay, {currency}"] = _write_counts(people * pay, smallest * conditions * pay)
    return pd.DataFrame(columns)


def _write_counts(counts: pd.Series[float], smallest: float) -> list[str]:
    """Write numbers of participants or amounts: at most the smallest that was tried; a dash where no size is enough."""
    return [
        "–" if count != count else f"{'≤ ' if count == smallest else ''}{_format_amount(count)}" for count in counts
    ]


def _enough(test: str, effect: float, per_condition: float, conditions: int, pay: float, currency: str) -> str:
    hypothesis = describe_hypothesis(*test.split(" - ", 1))
    what = f"To show that {hypothesis} ({power.name_test(test)}), effects × {effect:g}"
    if per_condition != per_condition:  # NaN: none of the sizes
        return (
            f"{what}: at none of these sizes is the whole 95% interval of power above 80%; try larger sizes or more "
            "simulated studies."
        )
    people = round(per_condition * conditions)
    cost = f", {_format_amount(people * pay)} {currency}" if pay else ""
    return (
        f"{what}: with {per_condition:g} participants per condition ({people:,} in all{cost}), the whole 95% "
        "interval of power is above 80%."
    )


def _format_amount(amount: float) -> str:
    """Format an amount of money: ``"240"``, ``"262.50"``."""
    return f"{amount:,.2f}".removesuffix(".00")
