"""Evidence for no difference in the report: the equivalence tests and Bayes factors that a plan asks for."""

from __future__ import annotations

import pandas as pd

from study.analysis.means import bayes_factors
from study.analysis.means.equivalence import write_bounds
from study.analysis.models.sentences import coverage_text
from study.analysis.planned import equivalence
from study.analysis.planned.analysis import PlannedAnalysis
from study.analysis.report import captions
from study.analysis.report.document import Part, Section


def tabulate(plan: PlannedAnalysis | None) -> dict[str, pd.DataFrame]:
    """Return the tables by the names of their files; none without a plan that asks for them."""
    if plan is None:
        return {}
    tables = {"equivalence": plan.equivalence, "bayes_factors": plan.bayes_factors}
    return {name: table for name, table in tables.items() if table is not None}


def list_sections(plan: PlannedAnalysis | None) -> list[Section]:
    """List a section for each table."""
    if plan is None:
        return []
    bounds, prior_sd, level = plan.plan.equivalence, plan.plan.prior_sd, plan.level
    sections = []
    if bounds is not None and plan.equivalence is not None:
        sections.append(
            Section(
                "equivalence",
                f"Equivalence within {write_bounds(bounds)} percentage points",
                plan.label,
                equivalence.explain(level),
                [Part(plan.equivalence, coverage=coverage_text(2 * level))],
                lines=list(plan.equivalence_sentences),
            )
        )
    if prior_sd is not None and plan.bayes_factors is not None:
        sections.append(
            Section(
                "bayes_factors",
                "Bayes factors for no difference",
                plan.label,
                bayes_factors.explain(prior_sd),
                [Part(plan.bayes_factors, captions.CONTRASTS)],
            )
        )
    return sections
