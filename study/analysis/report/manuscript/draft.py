"""The draft of an analysis: its method, results and tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from study.analysis.models.sentences import coverage_text
from study.analysis.planned.analysis import PlannedAnalysis
from study.analysis.report import captions
from study.analysis.report.finding import HeadlineResult
from study.analysis.report.headline import forest
from study.analysis.report.manuscript.findings import write_results
from study.analysis.report.manuscript.manuscript import Manuscript, ManuscriptFigure, ManuscriptTable
from study.analysis.report.manuscript.method import write_method
from study.analysis.responses.outcome import find_outcome
from study.bundle import Manifest


def write_draft(
    title: str,
    finding: HeadlineResult,
    plan: PlannedAnalysis | None,
    manifest: Manifest | None,
    tables: Mapping[str, pd.DataFrame],
    accuracy: go.Figure,
) -> Manuscript:
    """Write the draft of a report with these tables, by the names of their files, and Figure 1."""
    method = write_method(finding.analysis, finding.data, plan, manifest, finding.level)
    model = finding.analysis.largest
    coefficients = ManuscriptTable(
        "Coefficients of the Largest Model",
        tables["table1"].drop(columns=["stars", "odds_ratio"]),
        captions.explain_table_1(model).partition(" * ")[0],
    )
    task = finding.data.task
    heading = f"{'Accuracy' if task.is_scored else 'Mean Level'} by Condition and Trial Type"
    caption = captions.explain_figure_1(finding.data.every, task)
    figures = [
        ManuscriptFigure(heading, accuracy, caption, "figure1.svg"),
        *_draw_contrasts(finding),
    ]
    shown = [*list_tables(finding, tables).values(), coefficients]
    return Manuscript(title, method, write_results(finding), shown, figures)


def _draw_contrasts(finding: HeadlineResult) -> list[ManuscriptFigure]:
    """Draw the contrasts, where any has an estimate."""
    outcome = find_outcome(finding.contrasts)
    if finding.contrasts.empty or finding.contrasts[outcome.difference].isna().all():
        return []
    drawn = forest(finding.contrasts, finding.level, simulated=finding.data.has_simulated)
    note = f"Marks are differences, with their {coverage_text(finding.level)} intervals, uncorrected."
    heading = f"Differences in {'Accuracy' if outcome.is_scored else 'the Mean Level'} Between Conditions"
    return [ManuscriptFigure(heading, drawn, note, "contrasts.svg")]


def list_tables(finding: HeadlineResult, tables: Mapping[str, pd.DataFrame]) -> dict[str, ManuscriptTable]:
    """List the tables of a manuscript by the names of their files, those without rows left out."""
    analysis, coverage, is_scored = finding.analysis, coverage_text(finding.level), finding.data.task.is_scored
    explained = captions.explain_models(analysis.random, is_scored=is_scored)
    made = {
        "models": ManuscriptTable("Model Comparisons", tables["models"], explained, captions.MODELS),
        "random_effects": ManuscriptTable(
            "Random Effects of the Largest Model",
            tables["random_effects"],
            captions.explain_random_effects(finding.data.frame, analysis.largest),
        ),
    }
    contrasts = tables["contrasts"]
    if contrasts.empty:
        return made
    shown = contrasts[list(captions.choose_columns(contrasts)[0])]
    note = captions.explain_contrasts(finding.level, is_scored=is_scored)
    return {"contrasts": ManuscriptTable("Contrasts", shown, note, captions.CONTRASTS, coverage), **made}
