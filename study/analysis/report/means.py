"""The estimated means that a plan asks for, in the report."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from study.analysis.means.means import EstimatedMeans
from study.analysis.models.sentences import coverage_text
from study.analysis.planned.analysis import PlannedAnalysis
from study.analysis.report.document import Part, Section


def tabulate(plan: PlannedAnalysis | None) -> dict[str, pd.DataFrame]:
    """Return the tables by the names of their files, ``means_1`` and ``means_1_contrasts``; none without a plan."""
    return {
        name: table
        for number, (_, made) in enumerate(_list_all(plan), start=1)
        if isinstance(made, EstimatedMeans)
        for name, table in zip((f"means_{number}", f"means_{number}_contrasts"), list_tables(made), strict=True)
    }


def list_tables(made: EstimatedMeans) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return means and contrasts without columns that are empty throughout."""
    means, contrasts = (table.dropna(axis="columns", how="all") for table in (made.means, made.contrasts))
    return means, contrasts


def list_sections(plan: PlannedAnalysis | None) -> list[Section]:
    """List a section for each of the planned means."""
    return [] if plan is None else [_make_section(plan, *one) for one in enumerate(_list_all(plan), start=1)]


def _make_section(plan: PlannedAnalysis, number: int, planned: tuple[str, EstimatedMeans | str]) -> Section:
    asked, made = planned
    heading = f"Estimated means of {asked}"
    if isinstance(made, str):
        return Section(f"means_{number}", heading, plan.label, made, [])
    coverage = coverage_text(plan.level)
    parts = [Part(table, coverage=coverage) for table in list_tables(made) if len(table)]
    return Section(f"means_{number}", heading, plan.label, " ".join(made.notes), parts)


def _list_all(plan: PlannedAnalysis | None) -> Iterator[tuple[str, EstimatedMeans | str]]:
    yield from () if plan is None else plan.means.items()
