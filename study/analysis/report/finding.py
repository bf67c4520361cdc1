"""The main result in sentences: what the tests say, how large each effect is, and what is left out."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from study.analysis.models import random_effects
from study.analysis.models.records import MixedModel
from study.analysis.models.sentences import LEVEL
from study.analysis.planned import placebos
from study.analysis.planned.analysis import PlannedAnalysis
from study.analysis.planned.nested import NestedAnalysis
from study.analysis.report import headline
from study.analysis.report.opening import Opening, write_opening
from study.analysis.report.verdicts import Verdict, list_verdicts
from study.analysis.responses.reading import Responses


@dataclass(frozen=True)
class HeadlineResult:
    """The main result: the tests, then the size of each effect.

    Attributes
    ----------
    contrasts
        As of `study.analysis.planned.contrasts.table`, at 1 - `level`.
    level
        The p below which a test counts as evidence.
    omission
        Which random slopes the models leave out, if any.
    interim
        Why these are not the planned results yet, if so.
    untestable
        Which planned contrasts have no responses, if any.
    planned
        Whether a plan named the contrasts.
    equivalence
        The conclusions of the planned equivalence tests, if any.
    compared
        The tests with and without random slopes, where the comparison was made.
    conclusions
        What exploratory analyses conclude, a line each.
    condition_model
        The model of the contrasts that have a condition outside the two factors, if any.
    """

    analysis: NestedAnalysis
    data: Responses
    contrasts: pd.DataFrame
    level: float
    omission: str | None
    interim: str | None = None
    untestable: str | None = None
    planned: bool = False
    equivalence: tuple[str, ...] = ()
    compared: pd.DataFrame | None = None
    conclusions: tuple[str, ...] = ()
    condition_model: MixedModel | None = None

    @property
    def sentences(self) -> list[str]:
        """The opening, tests, effects, and what is left out."""
        opening = [] if self.opening is None else [self.opening.sentence]
        said = [verdict.text for verdict in self.verdicts]
        return [*opening, *said, *self.effects, *self.omissions]

    @property
    def opening(self) -> Opening | None:
        """The verdict with its largest difference; None where its models are not fitted."""
        return write_opening(self.analysis, self.data, self.contrasts, self.compared, self.level, planned=self.planned)

    @property
    def omissions(self) -> list[str]:
        """Contrasts and random slopes that are left out, in a sentence each."""
        return [line for line in (self.untestable, self.omission) if line is not None]

    @property
    def verdicts(self) -> list[Verdict]:
        """What the tests say."""
        return list_verdicts(self.analysis, self.data, self.compared, self.level)

    @property
    def effects(self) -> list[str]:
        """The size of each contrast, in sentences."""
        return [] if self.contrasts.empty else headline.sentences(self.contrasts, self.level)


def compute_headline(analysis: NestedAnalysis, data: Responses, plan: PlannedAnalysis | None) -> HeadlineResult:
    """Return the planned contrasts at the plan's level; without a plan, the default ones."""
    omission = random_effects.omission(data.frame, analysis.requested_random)
    if plan is not None:
        interim = None if plan.final else plan.stopping
        return HeadlineResult(
            analysis,
            data,
            plan.contrasts,
            plan.level,
            omission,
            interim,
            plan.untestable,
            planned=True,
            equivalence=plan.equivalence_sentences,
            condition_model=plan.condition_model,
        )
    made = placebos.together(data, analysis.largest, placebos.list_all_default_contrasts(data))
    return HeadlineResult(analysis, data, made.table, LEVEL, omission, condition_model=made.condition_model)
