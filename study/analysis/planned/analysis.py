"""The analysis as it was planned: exclusions by rule and counted, then the models and contrasts that were named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pandas as pd
from scipy.stats import norm

from core.errors import ForetellError
from core.types import Progress, silent
from study import conditions
from study.analysis.means import bayes_factors
from study.analysis.means.means import EstimatedMeans
from study.analysis.planned import covariates, equivalence, means, nested, placebos
from study.analysis.planned.bounds import bounds
from study.analysis.planned.contrasts import Contrast, describe_untestable
from study.analysis.planned.nested import NestedAnalysis
from study.analysis.responses.periods import are_crossed
from study.analysis.responses.reading import Responses
from study.analysis.words.headings import INTERIM
from study.plan.preregistration import AnalysisPlan, Exclusions

if TYPE_CHECKING:
    from study.analysis.models.records import InterimAnalysis, MixedModel


@dataclass(frozen=True)
class PlannedData:
    """The data that the plan leaves to analyse.

    Attributes
    ----------
    data
        The responses that stayed.
    exclusions
        rule, people, `responses` left out: what researchers excluded during the collection, then every rule of the
        plan, in its order, also those that hit nobody.
    stopping
        Whether the collection came to its planned end, and by which: all its participants, or an interim analysis.
    final
        Whether it did.
    level
        The p below which a planned test counts as evidence: the plan's alpha, or what its interim analyses leave for
        the last one. Intervals cover 1 - level.
    given
        The responses before the plan's exclusions.
    """

    plan: AnalysisPlan
    data: Responses
    exclusions: pd.DataFrame
    stopping: str
    final: bool
    level: float
    given: Responses

    @property
    def label(self) -> str:
        """Whether the data are those that were planned."""
        return "planned" if self.final else INTERIM


@dataclass(frozen=True)
class PlannedAnalysis(PlannedData):
    """The results of the plan.

    Attributes
    ----------
    analysis
        The planned models with their tests.
    contrasts
        The planned contrasts of the largest model, as of `study.analysis.planned.contrasts.table`; those between
        conditions and trial types that have responses.
    condition_model
        The model of the contrasts that have a condition outside the two factors, if any.
    means
        The planned means by what the plan writes, or a sentence on why they cannot be estimated.
    """

    analysis: NestedAnalysis
    contrasts: pd.DataFrame
    condition_model: MixedModel | None = None
    means: Mapping[str, EstimatedMeans | str] = field(default_factory=dict)

    @property
    def equivalence(self) -> pd.DataFrame | None:
        """The planned equivalence tests, as of `study.analysis.planned.equivalence.tabulate`; None without bounds."""
        bounds = self.plan.equivalence
        if bounds is None or self.contrasts.empty or not self.data.task.is_scored:
            return None
        return equivalence.tabulate(self.contrasts, bounds, self.level)

    @property
    def equivalence_sentences(self) -> tuple[str, ...]:
        """The conclusion of each planned equivalence test."""
        bounds, table = self.plan.equivalence, self.equivalence
        return () if bounds is None or table is None else tuple(equivalence.describe(table, bounds, self.level))

    @property
    def bayes_factors(self) -> pd.DataFrame | None:
        """The planned Bayes factors, as of `study.analysis.means.bayes_factors.tabulate`; None without a prior."""
        if self.plan.prior_sd is None or self.contrasts.empty:
            return None
        return bayes_factors.tabulate(self.contrasts, self.plan.prior_sd)

    @property
    def untestable(self) -> str | None:
        """A sentence on the planned contrasts that have no responses, if any."""
        return describe_untestable(self.data.every, list_contrasts(self.plan))


def execute(
    data: Responses, plan: AnalysisPlan, *, looks: Sequence[InterimAnalysis] | None = None, progress: Progress = silent
) -> PlannedAnalysis:
    """Do what the plan says.

    Parameters
    ----------
    looks
        The interim analyses that were made of these responses, in their order; None where that is not known.

    Raises
    ------
    ForetellError
        A rule needs a column that the responses do not have, or nobody is left.
    """
    return fit_plan(keep(data, plan, looks), progress=progress)


def keep(data: Responses, plan: AnalysisPlan, looks: Sequence[InterimAnalysis] | None = None) -> PlannedData:
    """Leave out what the plan leaves out, before any model is fitted.

    Raises
    ------
    ForetellError
        A rule needs a column that the responses do not have, or nobody is left.
    """
    data = covariates.attach(data, plan.covariates)
    every, counts = exclude(data.every, plan.exclusions)
    misled = every["condition"].isin(conditions.list_separate_conditions())
    kept = every[~misled]
    if kept["participant"].nunique() < 2:
        raise ForetellError(
            f"The plan's exclusions leave {kept['participant'].nunique()} participants of "
            f"{data.frame['participant'].nunique()}: look at the counts by rule, and at the plan."
        )
    true, placebos_kept = (every[rows].reset_index(drop=True) for rows in (~misled, misled))
    stayed = covariates.standardise(replace(data, frame=true, placebos=placebos_kept), plan.covariates)
    counts = pd.concat([data.excluded, counts], ignore_index=True) if len(data.excluded) else counts
    final, sentence = _stopping(every, plan, looks)
    given = covariates.standardise(data, plan.covariates)
    return PlannedData(plan, stayed, counts, sentence, final, significance(plan, looks), given)


def fit_plan(kept: PlannedData, *, progress: Progress = silent) -> PlannedAnalysis:
    """Return the planned models and contrasts of what the plan leaves."""
    data, plan = kept.data, kept.plan
    analysis = nested.analyze(data, fixed=plan.models, tests=plan.tests, progress=progress)
    asked = list_contrasts(plan)
    made = placebos.together(data, analysis.largest, asked, level=1 - kept.level)
    estimated = means.estimate(data.frame, analysis.largest, plan.means, level=1 - kept.level)
    return PlannedAnalysis(
        plan, data, kept.exclusions, kept.stopping, kept.final, kept.level, kept.given, analysis, *made, estimated
    )


def list_contrasts(plan: AnalysisPlan) -> list[Contrast]:
    """List the contrasts that a plan names."""
    return [Contrast(c.more, c.less, c.trial_types) for c in plan.contrasts]


def significance(plan: AnalysisPlan, looks: Sequence[InterimAnalysis] | None) -> float:
    """Return the two-sided p of the last interim bound, the final one's if none is known; without bounds, alpha."""
    if plan.stopping is None:
        return plan.alpha
    declared = plan.stopping.looks
    each = bounds([n / declared[-1] for n in declared], plan.alpha, plan.stopping.spending)
    return 2 * float(norm.sf(looks[-1].bound if looks else each[-1]))


def exclude(frame: pd.DataFrame, rules: Exclusions) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows left and what each rule removed (rule, people, responses); the first rule that applies counts."""
    rows, kept = [], frame
    for rule, out in _list_participant_rules(frame, rules):
        hit = kept["participant"].isin(out)
        rows.append((rule, kept.loc[hit, "participant"].nunique(), int(hit.sum())))
        kept = kept[~hit]
    for rule, column, low, high in _list_response_rules(rules):
        hit = ~_column(kept, column, rule).between(low, high) & kept[column].notna()
        rows.append((rule, 0, int(hit.sum())))
        kept = kept[~hit]
    return kept, pd.DataFrame(rows, columns=["rule", "people", "responses"])


def _list_participant_rules(frame: pd.DataFrame, rules: Exclusions) -> Iterator[tuple[str, list[str]]]:
    """List each rule about participants in words, and those it excludes."""
    people = frame.groupby("participant")
    if rules.fewest_responses is not None:
        counts = people.size()
        yield f"fewer than {rules.fewest_responses} responses", list(counts.index[counts < rules.fewest_responses])
    if rules.most_fast is not None and rules.fastest_ms is not None:
        rule = f"more than {rules.most_fast:.0%} of responses faster than {rules.fastest_ms:g} ms"
        fast = (_column(frame, "rt_ms", rule) < rules.fastest_ms).groupby(frame["participant"]).mean()
        yield rule, list(fast.index[fast > rules.most_fast])
    if rules.least_accuracy is not None:
        rule = f"accuracy below {rules.least_accuracy:.0%} where the AI is right"
        _column(frame, "correct", rule)
        right = frame[frame["trial_type"] == "std_correct"].groupby("participant")["correct"].mean()
        yield rule, list(right.index[right < rules.least_accuracy])


def _list_response_rules(rules: Exclusions) -> Iterator[tuple[str, str, float, float]]:
    """List each rule about single responses in words, its column, and what it keeps (both ends included)."""
    if rules.fastest_ms is not None:
        yield f"responses faster than {rules.fastest_ms:g} ms", "rt_ms", rules.fastest_ms, float("inf")
    if rules.slowest_ms is not None:
        yield f"responses slower than {rules.slowest_ms:g} ms", "rt_ms", 0.0, rules.slowest_ms


def _column(frame: pd.DataFrame, name: str, rule: str) -> pd.Series[float]:
    if name not in frame:
        raise ForetellError(f"The plan excludes {rule!r}, but the responses have no column {name!r}: name it.")
    return frame[name]


def _stopping(frame: pd.DataFrame, plan: AnalysisPlan, looks: Sequence[InterimAnalysis] | None) -> tuple[bool, str]:
    if plan.participants is None:
        return True, "The plan sets no sample size."
    if looks and looks[-1].is_final:
        return True, _describe_ending(looks[-1])
    fewest, crossed = int(frame.groupby("condition")["participant"].nunique().min()), are_crossed(frame)
    if fewest < plan.participants:
        return False, (
            f"Collection is not complete: {fewest} of the {plan.participants} planned participants"
            f"{'' if crossed else ' in the smallest condition'} (after exclusions){_unless(plan, looks)}."
        )
    each = "participants, each in every condition," if crossed else "participants per condition"
    return True, f"The planned {plan.participants} {each} were reached after exclusions."


def _describe_ending(look: InterimAnalysis) -> str:
    """Describe how an interim analysis ended the collection. Its bias: Jennison & Turnbull (1999), chapter 8."""
    beyond = "beyond" if look.is_crossed else "within"
    said = f"{look.sentence} Its |z| was {abs(look.z):.2f}, {beyond} the bound of {look.bound:.2f}: that test decides."
    if look.is_last:
        return said
    return (
        f"{said} The p-values and intervals here are not adjusted for the interim analyses, and effects are "
        "overestimated after early stopping."
    )


def _unless(plan: AnalysisPlan, looks: Sequence[InterimAnalysis] | None) -> str:
    if plan.stopping is None:
        return ""
    if looks is None:
        return ", unless a planned interim analysis closed the collection; only the server that collected it can tell"
    return f". {len(looks)} of {len(plan.stopping.looks)} interim analyses were made, and none closed the collection"
