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
    caption = captions.explain_figure_1(finding.data.every)
    figures = [
        ManuscriptFigure("Accuracy by Condition and Trial Type", accuracy, caption, "figure1.svg"),
        *_draw_contrasts(finding),
    ]
    shown = [*list_tables(finding, tables).values(), coefficients]
    return Manuscript(title, method, write_results(finding), shown, figures)


def _draw_contrasts(finding: HeadlineResult) -> list[ManuscriptFigure]:
    """Draw the contrasts, where any has an estimate."""
    if finding.contrasts.empty or finding.contrasts["points"].isna().all():
        return []
    drawn = forest(finding.contrasts, finding.level, simulated=finding.data.has_simulated)
    note = f"Marks are differences, with their {coverage_text(finding.level)} intervals, uncorrected."
    return [ManuscriptFigure("Differences in Accuracy Between Conditions", drawn, note, "contrasts.svg")]


def list_tables(finding: HeadlineResult, tables: Mapping[str, pd.DataFrame]) -> dict[str, ManuscriptTable]:
    """List the tables of a manuscript by the names of their files, those without rows left out."""
    analysis, coverage = finding.analysis, coverage_text(finding.level)
    made = {
        "models": ManuscriptTable(
            "Model Comparisons", tables["models"], captions.explain_models(analysis.random), captions.MODELS
        ),
        "random_effects": ManuscriptTable(
            "Random Effects of the Largest Model", tables["random_effects"], captions.RANDOM_EFFECTS
        ),
    }
    contrasts = tables["contrasts"]
    if contrasts.empty:
        return made
    shown = contrasts[list(captions.ACCURACY_COLUMNS)]
    note = captions.explain_contrasts(finding.level)
    return {"contrasts": ManuscriptTable("Contrasts", shown, note, captions.CONTRASTS, coverage), **made}
