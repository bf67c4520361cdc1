"""The main result in sentences: what the tests say, how large each effect is, and what is left out."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from study.analysis.models import random_effects
from study.analysis.models.sentences import LEVEL, alpha_text, describe_hypothesis, describe_p
from study.analysis.planned import placebos
from study.analysis.planned.analysis import PlannedAnalysis
from study.analysis.planned.nested import NestedAnalysis, RatioTest
from study.analysis.report import headline
from study.analysis.responses.reading import Responses


def describe_test(test: RatioTest, level: float = LEVEL) -> str:
    """Describe a likelihood-ratio test in one sentence; p below `level` counts as evidence."""
    added = describe_hypothesis(test.smaller, test.larger)
    if test.p is None:
        return f"These data cannot say whether {added}: both models have the same parameters."
    verdict = "There is evidence that" if test.p < level else "There is no clear evidence that"
    against = "" if level == LEVEL else f", tested at alpha = {alpha_text(level)}"
    return f"{verdict} {added} (χ²({test.df}) = {test.chisq:.2f}, {describe_p(test.p)}{against})."


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
    """

    analysis: NestedAnalysis
    contrasts: pd.DataFrame
    level: float
    omission: str | None
    interim: str | None = None
    untestable: str | None = None

    @property
    def sentences(self) -> list[str]:
        """Tests, effects, and what is left out."""
        return [*self.verdicts, *self.effects, *self.omissions]

    @property
    def omissions(self) -> list[str]:
        """Contrasts and random slopes that are left out, in a sentence each."""
        return [line for line in (self.untestable, self.omission) if line is not None]

    @property
    def verdicts(self) -> list[str]:
        """What the tests say, in sentences."""
        return [describe_test(test, self.level) for test in self.analysis.tests]

    @property
    def effects(self) -> list[str]:
        """The size of each contrast, in sentences."""
        return [] if self.contrasts.empty else headline.sentences(self.contrasts, self.level)


def compute_headline(analysis: NestedAnalysis, data: Responses, plan: PlannedAnalysis | None) -> HeadlineResult:
    """Return the planned contrasts at the plan's level; without a plan, the default ones."""
    omission = random_effects.omission(data.frame, analysis.random)
    if plan is not None:
        interim = None if plan.final else plan.stopping
        return HeadlineResult(analysis, plan.contrasts, plan.level, omission, interim, plan.untestable)
    made = placebos.together(data, analysis.largest, placebos.list_all_default_contrasts(data))
    return HeadlineResult(analysis, made, LEVEL, omission)
