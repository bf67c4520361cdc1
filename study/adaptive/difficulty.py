"""The difficulty of each trial, from a measure that is frozen with the study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from core.errors import ForetellError
from study.bundle import TYPE_LABELS, Trial, significant
from study.facts import DifficultyFacts, Number
from study.plan.adaptive import LEAST_PER_LEVEL, STRATUM, Adaptive
from study.plan.covariates import TRIAL_COVARIATES


def measure_difficulty(adaptive: Adaptive | None, trials: Sequence[Trial]) -> list[Trial]:
    """Give each trial its difficulty, ranked within its type; without a policy, the trials are as they were.

    The score is the normal quantile of (rank - 1/2) / n, ranks from the easiest trial up; equal values share a rank.

    Raises
    ------
    ForetellError
        A trial has no measure, or a type too few trials or different values for the levels.
    """
    if adaptive is None:
        return [*trials]
    values = [read_measure(trial, adaptive.by) for trial in trials]
    if fault := next(filter(None, _find_faults(adaptive, trials, values)), ""):
        raise ForetellError(fault)
    made: dict[str, DifficultyFacts] = {}
    for kind in {trial.trial_type for trial in trials}:
        own = [trial.id for trial in trials if trial.trial_type == kind]
        numbers = np.array([v for t, v in zip(trials, values, strict=True) if t.trial_type == kind], dtype=np.float64)
        made |= dict(zip(own, _rank(numbers, adaptive), strict=True))
    return [trial.model_copy(update={"difficulty": made[trial.id]}) for trial in trials]


def read_measure(trial: Trial, name: str) -> Number | None:
    """Read a measure of a trial; None where it was not measured."""
    if name == STRATUM:
        return None if trial.stratum is None else trial.stratum.value
    return TRIAL_COVARIATES[name].read(trial)


def _rank(values: NDArray[np.float64], adaptive: Adaptive) -> list[DifficultyFacts]:
    """Rank the trials of one type."""
    share = (rankdata(values if adaptive.harder == "high" else -values) - 0.5) / len(values)
    facts = []
    for value, place in zip(values.tolist(), share.tolist(), strict=True):
        level = {} if adaptive.levels is None else {"level": 1 + min(int(place * adaptive.levels), adaptive.levels - 1)}
        facts.append(DifficultyFacts(measure=adaptive.by, value=value, score=significant(ndtri(place)), **level))
    return facts


def _find_faults(adaptive: Adaptive, trials: Sequence[Trial], values: Sequence[Number | None]) -> Iterator[str]:
    if missing := values.count(None):
        first = trials[values.index(None)].id
        yield (
            f"adaptive.by: {missing} of {len(trials)} trials have no {adaptive.by}, such as {first}. Choose a measure "
            "that every trial has, such as ai_probability."
        )
    yield adaptive.find_shortage(len(trials))
    yield adaptive.find_few(Counter(trial.trial_type for trial in trials))
    levels = adaptive.levels or LEAST_PER_LEVEL
    for kind in sorted({trial.trial_type for trial in trials}):
        own = [value for trial, value in zip(trials, values, strict=True) if trial.trial_type == kind]
        if len({*own}) < levels:
            yield (
                f"adaptive.by: the {len(own)} trials of the type {TYPE_LABELS[kind]} have {len({*own})} different "
                f"values of {adaptive.by}, too few for {levels} levels. Choose another measure."
            )
