"""How many people a study needs: what its simulated studies are drawn from, and the curve, for page and command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product

import pandas as pd

from core.errors import ForetellError
from core.types import Progress
from dashboard.power.inputs import FEWEST_PARTICIPANTS, MOST_PARTICIPANTS, SLOPES
from dashboard.power.refusals import (
    refuse_adaptive,
    refuse_blocks,
    refuse_other_scale,
    refuse_other_than_two,
    refuse_pilot_of_units,
    refuse_points,
    refuse_separate,
)
from dashboard.shared.keys import digest
from dashboard.shared.tasks import Task
from study.analysis.means.equivalence import write_bounds
from study.analysis.models import formula as formulas
from study.analysis.models import random_effects
from study.analysis.models.sentences import alpha_text
from study.analysis.planned import nested
from study.analysis.planned.analysis import significance
from study.analysis.planned.contrasts import Contrast
from study.analysis.power import simulation as power
from study.analysis.power.truths import TABLE_1, AdditiveTruth, Theories, Truth, from_pilot
from study.analysis.power.within import put_within
from study.analysis.responses.outcome import Outcome, choose_outcome
from study.analysis.responses.reading import Responses
from study.attributes.rows import ask_each, find_type
from study.bundle import OF_UNITS, TRIAL_TYPES, TrialType
from study.conditions import format_condition
from study.plan.config import StudyConfig
from study.plan.covariates import check_trials
from study.plan.equivalence import Bounds
from study.plan.preregistration import FACTORIAL_CONDITIONS
from study.workspace import parallel
from study.workspace.workspace import bundle_named, home

TRIAL = 20
"""Participants per condition, at most, of the simulated study that is timed: time grows in proportion to them."""
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
    with_contrasts
        Whether the planned contrasts are tested too.
    other_bounds
        Equivalence bounds in percentage points to try instead of the plan's.
    """

    study: StudyConfig
    sizes: tuple[int, ...]
    studies: int = 200
    effects: tuple[float, ...] = (1.0,)
    pilot: Responses | None = None
    mixture: Mapping[str, float] | None = None
    seed: int = 0
    slope_sds: Mapping[str, float] = field(default_factory=dict)
    with_contrasts: bool = False
    other_bounds: Bounds | None = None

    @property
    def conditions(self) -> tuple[str, ...]:
        """The study's conditions of the two factors, which the planned models compare.

        Raises
        ------
        ForetellError
            Fewer than two.
        """
        compared = tuple(name for name in self.study.conditions if name in FACTORIAL_CONDITIONS)
        if len(compared) < 2:
            known = ", ".join(map(format_condition, FACTORIAL_CONDITIONS))
            raise ForetellError(
                f"Power needs at least two of these conditions to compare: {known}. "
                f"The study {self.study.study.name} has {len(compared)} of them."
            )
        return compared

    def truth(self) -> Truth:
        """Return the model to simulate from.

        Raises
        ------
        ForetellError
            The pilot does not determine it, the study of simulated participants is not built, the paper's accuracies
            are of fewer options than the study's, the planned models have covariates and the source no trials, or a
            difference of levels is to be equivalent in percentage points.
        """
        refuse_adaptive(self.study)
        covariates = self.study.plan.covariates
        if covariates and self.mixture is None:
            raise ForetellError(
                f"The planned models name {', '.join(covariates)}, which only the trials of a built study have: build "
                "it and assume simulated participants, who respond to its trials."
            )
        if self.mixture is not None and self.slope_sds:
            raise ForetellError(
                "Simulated participants follow their theories and have no random slopes: assume slopes with the "
                "paper's estimates or a pilot."
            )
        refuse_blocks(self.study)
        refuse_points(self.study, self.other_bounds)
        world = self._make_truth()
        if self.study.allocation.within:
            refuse_separate(self.study, self.conditions)
            world = put_within(world)
        return world.with_slopes(self.slope_sds) if isinstance(world, AdditiveTruth) else world

    def tabulate_means(self) -> pd.DataFrame:
        """Tabulate effect, condition, trial_type, accuracy and ``points``, the percentage points above no explanation.

        Of ratings, ``mean_level`` and ``level_difference``. Without that condition there is no difference to give.
        """
        world = self.truth()
        parts = [
            (world.scale(effect) if isinstance(world, AdditiveTruth) else world).tabulate_means().assign(effect=effect)
            for effect in self.effects
        ]
        table, mean = pd.concat(parts, ignore_index=True), self.outcome.mean
        without = table[table["condition"] == "none"].set_index(["effect", "trial_type"])[mean]
        compared = pd.MultiIndex.from_frame(table[["effect", "trial_type"]])
        above = table[mean] - without.reindex(compared).to_numpy()
        return table.assign(**{self.outcome.difference: self.outcome.unit * above})

    @property
    def outcome(self) -> Outcome:
        """What is simulated: correct responses, or levels."""
        return choose_outcome(is_scored=self.study.task.is_scored)

    @property
    def groups(self) -> int:
        """How many groups of participants the study has: one for each condition, or one that sees all."""
        return 1 if self.study.allocation.within else len(self.study.conditions)

    def _make_truth(self) -> AdditiveTruth | Theories:
        study, conditions = self.study, self.conditions
        chosen, per_type = study.trials.categories, study.trials.per_type
        if self.mixture is not None:
            made = bundle_named(home(), study.study.name).manifest.trials
            trials = [one for trial in made for one in ask_each(trial)]
            check_trials(study.plan.covariates, trials)
            sittings = 1 if study.sittings is None else study.sittings.count
            return Theories(self.mixture, trials, conditions, study.task, study.plan.covariates, sittings)
        categories = chosen if isinstance(chosen, int) else len(chosen)
        if self.pilot is None:
            refuse_other_than_two(self.study)
            return AdditiveTruth(TABLE_1, conditions=conditions, categories=categories, per_type=per_type)
        refuse_pilot_of_units(study)
        fixed = {"interaction": nested.FIXED["interaction"]}  # with the random intercepts that a truth has
        refuse_other_scale(self.study, self.pilot.task)
        model = nested.analyze(self.pilot, fixed=fixed).models["interaction"]
        return from_pilot(model, conditions, categories, per_type)

    def curve(self, progress: Progress, workers: int | None = None, engine: str = "processes") -> pd.DataFrame:
        """Compute power by the study's own plan, as `study.analysis.power.simulation.curve` does."""
        return power.curve(
            self.truth(),
            self.sizes,
            studies=self.studies,
            seed=self.seed,
            alpha=self.alpha,
            effects=self.effects,
            models=self.study.plan.models,
            tests=self.study.plan.tests,
            contrasts=self.contrasts,
            equivalence=self.bounds,
            workers=workers,
            engine=engine,
            progress=progress,
        )

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """The planned contrasts between conditions that are simulated; none unless they are asked for."""
        planned = self.study.plan.contrasts if self.with_contrasts else ()
        simulated = self.conditions
        return tuple(
            Contrast(one.more, one.less, one.trial_types) for one in planned if {one.more, one.less} <= {*simulated}
        )

    @property
    def bounds(self) -> Bounds | None:
        """The equivalence bounds that the planned contrasts are tested with, if any."""
        return self.other_bounds or self.study.plan.equivalence

    @property
    def alpha(self) -> float:
        """The p below which a test of the final analysis is significant, as the results judge it."""
        return significance(self.study.plan, None)

    @property
    def criterion(self) -> str:
        """Write that p in words."""
        planned = f"the plan's alpha of {alpha_text(self.study.plan.alpha)}"
        if self.study.plan.stopping is None:
            return f"p below {planned}"
        return f"p below {alpha_text(self.alpha)}, which the interim analyses leave of {planned} for the last one"

    @property
    def is_simulated(self) -> bool:
        """Whether the effects are those of simulated participants, which are no evidence."""
        return self.mixture is not None or (self.pilot is not None and self.pilot.has_simulated)

    @property
    def planned_size(self) -> int | None:
        """The planned participants per condition, if they can be simulated."""
        planned = self.study.plan.participants
        return planned if planned and FEWEST_PARTICIPANTS <= planned <= MOST_PARTICIPANTS else None

    def with_planned_size(self) -> PowerAnalysis:
        """Return the analysis with the planned size among the others."""
        return replace(self, sizes=tuple(sorted({*self.sizes, *filter(None, [self.planned_size])})))

    def task(self) -> Task:
        """Return the task that computes the curve in the background on every core."""
        given = json.dumps([self.sizes, self.studies, self.effects, self.seed, self.with_contrasts, self.bounds])
        return Task(digest("power", given, *self._world()), self.curve, self.estimate)

    @property
    def means_key(self) -> str:
        """Name what `tabulate_means` depends on."""
        return digest("means", json.dumps(self.effects), *self._world())

    def estimate(self, workers: int | None = None) -> float:
        """Estimate the seconds of the curve, from timings of one simulated study and of the start of a process."""
        per_condition = min(max(self.sizes), TRIAL)
        key = digest("trial", str(per_condition), str(self.with_contrasts), *self._world())
        if key not in _timed:
            plan = self.study.plan
            _timed[key] = power.time_study(
                self.truth(), plan.models, plan.tests, per_condition, self.contrasts, self.bounds
            )
        repeats = self.studies * len(self.effects)
        count = parallel.count_workers(repeats * len(self.sizes), workers)
        fitting = repeats * sum(self.sizes) / per_condition * _timed[key] / count
        return fitting + (_time_start() if count > 1 else 0.0)

    @property
    def notes(self) -> list[str]:
        """Describe what is assumed, and the slopes of the design that the planned models leave out."""
        study = self.study
        omission = random_effects.planned_omission(
            study.plan.models, self.conditions, self._list_trials(), within=study.allocation.within
        )
        return [note for note in (self.assumptions, self.not_simulated, omission, self.equivalence) if note]

    def _list_trials(self) -> list[tuple[str, TrialType]]:
        """List category and type of the trials that the study plans."""
        study = self.study
        if study.task.of_attributes:
            types = map(find_type, study.attributes.is_used)
            return list(zip(study.attributes.names, types, strict=True)) * study.attributes.trials
        if study.task.of_units:
            return [(str(k), OF_UNITS[0]) for k in range(study.units.count) for _ in range(study.units.per_unit)]
        chosen = study.trials.categories
        return list(product(map(str, range(chosen)) if isinstance(chosen, int) else chosen, TRIAL_TYPES))

    @property
    def equivalence(self) -> str | None:
        """Say what the power of an equivalence test is, where they are simulated."""
        bounds = self.bounds
        if bounds is None or not self.contrasts:
            return None
        return (
            f"Equivalence within {write_bounds(bounds)} percentage points: the share of simulated studies that "
            "conclude it, at the true differences shown in brackets. A multiplier of 0 is no difference at all; where "
            "a true difference is outside the bounds, the share is that of false conclusions."
        )

    @property
    def not_simulated(self) -> str | None:
        """Name the conditions that the planned models leave out."""
        left = [format_condition(name) for name in self.study.conditions if name not in self.conditions]
        if not left:
            return None
        holm = " Holm's correction counts the other contrasts alone." if self.with_contrasts else ""
        return (
            f"Not simulated, because the planned models leave them out: {', '.join(left)}. Their pay is included.{holm}"
        )

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
