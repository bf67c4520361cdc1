"""The background work of the Results page: models, checks and measures of responses, under the hash of the rows."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from core.errors import ForetellError
from core.types import Progress
from dashboard.shared.keys import digest
from dashboard.shared.tasks import Task
from study.analysis.bayes.sampler import SamplerSettings
from study.analysis.exploratory import analysis as exploratory
from study.analysis.exploratory.analysis import AnalysedStudy, ExploratoryResult
from study.analysis.exploratory.bayes import BAYES
from study.analysis.means.adjustment import Adjustment
from study.analysis.means.effects import average_effects
from study.analysis.means.means import estimate_means
from study.analysis.models import intervals
from study.analysis.models.marginal import Scale
from study.analysis.models.records import InterimAnalysis, MixedModel
from study.analysis.models.sentences import LEVEL
from study.analysis.planned import analysis as planned
from study.analysis.planned import nested
from study.analysis.planned.analysis import PlannedAnalysis, PlannedData
from study.analysis.planned.nested import NestedAnalysis
from study.analysis.report import finding, model_table
from study.analysis.report.report import Report, encode
from study.analysis.responses.ratings import tabulate_outcomes
from study.analysis.responses.reading import Responses
from study.bundle import Manifest
from study.plan.preregistration import AnalysisPlan

SEED = 0
"""Of exploratory analyses that draw at random, as in the command ``analyze``."""
PROFILE_S = 2e-5
"""Processor time of one coefficient's profile, for each response."""
SLOPES_S = 5e-4
"""Processor time of the models with random slopes, for each response."""
MOST = 200_000
"""Responses up to which the page fits models: a fit blocks the whole process, here for some three seconds."""


@dataclass(frozen=True)
class Sample:
    """What is analysed, before any model.

    Attributes
    ----------
    data
        The responses that the plan's exclusions leave.
    numbers
        Of Figure 1.
    plan
        What the plan leaves, or None.
    key
        SHA-256 of all rows, also those left out, of the plan and of the looks made.
    """

    key: str
    data: Responses
    numbers: pd.DataFrame
    plan: PlannedData | None

    @property
    def level(self) -> float:
        """Return the p below which a test counts as evidence, by the plan and its interim analyses."""
        return LEVEL if self.plan is None else self.plan.level

    @property
    def label(self) -> str:
        """Whether this was planned before the data."""
        return "exploratory" if self.plan is None else self.plan.label


@dataclass(frozen=True)
class AnalysisResult(Sample):
    """What the models say.

    Attributes
    ----------
    plan
        What the plan gave, or None.
    contrasts
        Of the plan, or else the default ones, as in the report.
    """

    plan: PlannedAnalysis | None
    analysis: NestedAnalysis
    contrasts: pd.DataFrame

    @property
    def untestable(self) -> str | None:
        """Return a sentence on the planned contrasts that have no responses, if any."""
        return None if self.plan is None else self.plan.untestable

    @property
    def model(self) -> MixedModel:
        """Return the largest model."""
        return self.analysis.largest


def key_of(data: Responses) -> str:
    """Return the SHA-256 of the rows, and of the notes about them."""
    return digest(
        data.sha256, str(data.dropped), str(data.dates), data.excluded.to_json(orient="records"), *data.messages
    )


def make_sample_task(
    data: Responses, plan: AnalysisPlan | None, interim: Sequence[InterimAnalysis] | None = None
) -> Task:
    """Return the task that applies the plan's exclusions and computes Figure 1, which needs no model.

    ``interim`` are the interim analyses of these responses, None if unknown.
    """

    def work(progress: Progress) -> Sample:
        progress(0, 1, "computing Figure 1")
        kept = planned.keep(data, plan, interim) if plan else None
        stayed = kept.data if kept else data
        return Sample(key, stayed, tabulate_outcomes(stayed), kept)

    key = digest("sampled", key_of(data), plan.sha256 if plan else "", repr(interim))
    return Task(key, work, what="Reading the responses")


def make_analysis_task(sample: Sample) -> Task:
    """Return the task that fits the models, as planned if there is a plan.

    Raises
    ------
    ForetellError
        In the pool: more responses than `MOST`.
    """

    def work(progress: Progress) -> AnalysisResult:
        count = len(sample.data.frame)
        if count > MOST:
            raise ForetellError(
                f"{count:,} responses are too many to fit models on this page: above {MOST:,} each fit would delay "
                "participants, who use the same server. Download the responses and analyse them with the command "
                "analyze, on another machine or when no collection is running."
            )
        if sample.plan:
            done = planned.fit_plan(sample.plan, progress=progress)
            return AnalysisResult(sample.key, sample.data, sample.numbers, done, done.analysis, done.contrasts)
        analysis = nested.analyze(sample.data, progress=progress)
        table = finding.compute_headline(analysis, sample.data, None).contrasts
        return AnalysisResult(sample.key, sample.data, sample.numbers, None, analysis, table)

    return Task(digest("analysed", sample.key), work, what="Fitting the mixed models")


def make_measure_task(
    result: AnalysisResult, name: str, manifest: Manifest | None = None, *, draws: int = SamplerSettings.draws
) -> Task:
    """Return the task of an exploratory analysis; ``manifest`` has the trials, if it is about trials.

    ``draws`` are those of each chain of a Bayesian fit.
    """
    study = make_study(result, manifest, draws)
    known = f"{manifest.study_hash if manifest else ''} {result.key if result.plan else ''} {draws}"
    seconds = exploratory.EXPLORATORY[name].seconds

    def estimate() -> float | None:
        if name == "slopes":
            return len(study.frame) * SLOPES_S
        return None if seconds is None else seconds(study)

    def work(progress: Progress) -> ExploratoryResult:
        return exploratory.compute(name, replace(study, progress=progress))

    return _of(result, f"measure {name} {known}", work, estimate)


def make_study(
    result: AnalysisResult, manifest: Manifest | None = None, draws: int = SamplerSettings.draws
) -> AnalysedStudy:
    """Return what exploratory analyses of the responses may use."""
    return AnalysedStudy(result.data, SEED, manifest, result.analysis, result.plan, draws=draws)


def make_effects_task(result: AnalysisResult) -> Task:
    """Return the task that averages the effects of the explanations as probabilities, by trial type."""
    asked = ["saliency", "examples"]
    return _of(
        result,
        "effects",
        lambda _: average_effects(result.data.frame, result.model, asked, by="trial_type"),
    )


def make_means_task(result: AnalysisResult, asked: str, scale: Scale, adjust: Adjustment) -> Task:
    """Return the task that estimates means and all pairs of them."""
    return _of(
        result,
        f"means {asked} {scale} {adjust}",
        lambda _: estimate_means(result.data.frame, result.model, asked, adjust=adjust, scale=scale),
    )


def make_profile_task(result: AnalysisResult) -> Task:
    """Return the task of profile intervals of the largest model: a table of coefficients, one of deviations."""
    frame, model = result.data.frame, result.model

    def work(progress: Progress) -> tuple[pd.DataFrame, pd.DataFrame]:
        table = intervals.profile(frame, model, progress=progress).assign(term=model_table.table(model)["term"])
        return table, intervals.variance_components(frame, model)

    return _of(result, "profiles", work, lambda: len(frame) * len(model.coefficients) * PROFILE_S)


def _of(
    result: AnalysisResult,
    what: str,
    work: Callable[[Progress], Any],
    estimate: Callable[[], float | None] = lambda: None,
) -> Task:
    """Return a task about analysed responses."""
    return Task(digest(what, key_of(result.data), result.model.formula), work, estimate)


def make_report_task(
    result: AnalysisResult,
    manifest: Manifest | None = None,
    *,
    requests: Sequence[str] = (),
    draws: int = SamplerSettings.draws,
) -> Task:
    """Write every file of the command ``analyze``, by name.

    ``requests`` are its ``--robustness`` and ``--bayes``, and ``draws`` its ``--draws``.
    """

    def work(progress: Progress) -> dict[str, bytes]:
        said = finding.compute_headline(result.analysis, result.data, result.plan)
        report = Report(result.analysis, result.data, said, result.plan, manifest, SEED, requests, draws)
        return encode(report.describe_models() | report.describe_all(*report.explore(progress)))

    key = digest("report", result.key, manifest.study_hash if manifest else "", " ".join(requests), str(draws))

    def estimate() -> float | None:
        return sum(estimate_request(result, one, draws) for one in requests) if requests else None

    return Task(key, work, estimate)


def estimate_request(result: AnalysisResult, request: str, draws: int = SamplerSettings.draws) -> float:
    """Estimate the processor time of the analyses that a report has on request, s; all Bayesian ones share a fit."""
    study = make_study(result, draws=draws)
    offered = exploratory.list_analyses(study).values()
    each = [one.seconds(study) for one in offered if one.seconds is not None and one.request == request]
    return max(each) if request == BAYES else sum(each)


def zip_files(contents: dict[str, bytes]) -> bytes:
    """Pack all files into one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return buffer.getvalue()
