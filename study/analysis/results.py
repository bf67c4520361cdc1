"""Responses to a folder of results, as planned where there is a plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.types import Progress, silent
from study.analysis import nested, planned, report
from study.analysis.nested import NestedAnalysis
from study.analysis.responses import Responses
from study.analysis.stopping import Look
from study.bundle import Manifest
from study.preregistration import Plan


def write(
    data: Responses,
    out: Path,
    seed: int = 0,
    *,
    plan: Plan | None = None,
    manifest: Manifest | None = None,
    looks: Sequence[Look] | None = None,
    progress: Progress = silent,
) -> NestedAnalysis:
    """Write models, tables, figures and reports into `out`.

    Parameters
    ----------
    plan
        Executed as written; without one the paper's analysis is made and everything labelled exploratory.
    manifest
        Of the study that was answered, where it is known.
    looks
        The declared looks that were made at it; None where that is not known.
    """
    if plan is None:
        analysis = nested.analyze(data, progress=progress)
        report.write(analysis, data, out, seed=seed, manifest=manifest, progress=progress)
        return analysis
    done = planned.execute(data, plan, looks=looks, progress=progress)
    report.write(done.analysis, done.data, out, seed=seed, plan=done, manifest=manifest, progress=progress)
    return done.analysis
