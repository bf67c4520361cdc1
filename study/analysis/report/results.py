"""Responses to a folder of results, as planned where there is a plan."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from core.types import Progress, silent
from study.analysis.bayes.sampler import SamplerSettings
from study.analysis.models.records import InterimAnalysis
from study.analysis.planned import analysis as planned
from study.analysis.planned import nested
from study.analysis.report import files
from study.analysis.report.finding import HeadlineResult, compute_headline
from study.analysis.report.report import Report
from study.analysis.responses.reading import Responses
from study.bundle import Manifest
from study.plan.preregistration import AnalysisPlan


def write(
    data: Responses,
    out: Path,
    seed: int = 0,
    *,
    plan: AnalysisPlan | None = None,
    manifest: Manifest | None = None,
    looks: Sequence[InterimAnalysis] | None = None,
    requests: Collection[str] = (),
    draws: int = SamplerSettings.draws,
    progress: Progress = silent,
) -> HeadlineResult:
    """Write models, tables, figures and reports into `out`.

    Parameters
    ----------
    out
        Folder for the results; made if absent.
    seed
        Random seed of exploratory analyses that draw at random.
    plan
        Executed as written; without one the default analysis is made and everything labelled exploratory.
    manifest
        Of the study that was responded to, where it is known.
    looks
        The interim analyses that were made of it; None where that is not known.
    requests
        The exploratory analyses that take long and are wanted: ``"robustness"``, ``"bayes"``.
    draws
        Of each chain of a Bayesian fit, after warm-up.

    Raises
    ------
    ForetellError
        The responses cannot be analysed.
    """
    done = planned.execute(data, plan, looks=looks, progress=progress) if plan else None
    analysis = done.analysis if done else nested.analyze(data, progress=progress)
    stayed = done.data if done else data
    finding = compute_headline(analysis, stayed, done)
    report = Report(analysis, stayed, finding, done, manifest, seed, requests, draws)
    results = files.write(report, out, progress)
    said = tuple(f"{one.title} (exploratory). {one.conclusion}" for one in results if one.conclusion)
    return replace(report.headline, conclusions=said)
