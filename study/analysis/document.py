"""The report as one self-contained page and in Markdown, from the templates next to this file."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go
from markupsafe import Markup

from study.analysis.headings import format_heading, is_share
from study.analysis.nested import NestedAnalysis
from study.analysis.responses import Responses
from study.analysis.sentences import p_text
from study.analysis.wording import IN_WORDS
from study.bundle import Manifest
from study.conditions import format_condition
from study.plan.preregistration import AnalysisPlan
from study.workspace.provenance import code_digest
from study.workspace.templates import load_templates

PACKAGES = ("numpy", "scipy", "pandas", "glmm", "statsmodels", "plotly")
CHANCES = ("p", "p_holm")
SHOWN = 14
"""Rows of a table shown at once."""


class Section(NamedTuple):
    """A section of the page."""

    heading: str
    label: str
    says: str
    table: pd.DataFrame
    figure: go.Figure | None = None


def provenance(data: Responses, plan: AnalysisPlan | None, manifest: Manifest | None, seed: int) -> dict[str, str]:
    """List where the numbers come from: hashes of rows, plan, study and code, the random seed, and versions."""
    return {
        "data (SHA-256 of the rows as analysed)": data.sha256,
        "plan (SHA-256)": plan.sha256 if plan else "none",
        "study (hash)": manifest.study_hash if manifest else "none",
        "code (SHA-256)": code_digest(),
        "random seed": str(seed),
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def render(template: str, **values: Any) -> str:
    """Fill ``report.html`` or ``report.md``."""
    return _TEMPLATES.get_template(template).render(shown=SHOWN, **values)


def embed_figures(sections: Sequence[Section]) -> list[str]:
    """Draw the figure of each section as HTML, empty where there is none; the first one brings plotly.js."""
    drawn = count()
    return [
        ""
        if section.figure is None
        else Markup(
            section.figure.to_html(full_html=False, include_plotlyjs=next(drawn) == 0, div_id=f"figure{number}")
        )
        for number, section in enumerate(sections)
    ]


def summarise_data(data: Responses) -> str:
    """Count responses, participants of each condition, and categories in one sentence."""
    frame = data.frame
    people = frame.groupby("condition")["participant"].nunique()
    by_condition = ", ".join(f"{format_condition(name)}: {count}" for name, count in people.items())
    return (
        f"{len(frame):,} responses of {frame['participant'].nunique():,} participants "
        f"({by_condition}) to {frame['category'].nunique():,} "
        f"target categories; {data.dropped:,} rows left out."
    )


def tabulate_models(analysis: NestedAnalysis) -> pd.DataFrame:
    """Tabulate log-likelihood, parameters, random effects and convergence of each model."""
    rows = []
    for name, model in analysis.models.items():
        sd = {f"sd {effect.group}": effect.sd for effect in model.random}
        converged = "yes" if model.converged else "no"
        rows.append(
            {"model": name, "log-likelihood": model.loglik, "parameters": model.df, **sd, "converged": converged}
        )
    return pd.DataFrame(rows)


def format_cells(table: pd.DataFrame) -> list[list[str]]:
    """Format a table: three decimals, whole integers, p as articles print it, codes in words, a dash if missing."""
    shares = {name for name in table if is_share(str(name), table.columns)}
    rows = table.to_dict("records")
    return [[_format(name, value, is_share=name in shares) for name, value in row.items()] for row in rows]


def _format(name: Any, value: Any, *, is_share: bool) -> str:
    if pd.isna(value):
        return "–"
    if name in CHANCES:
        return p_text(value)
    if name in IN_WORDS and isinstance(value, str):
        return IN_WORDS[name](value)
    if is_share:
        return f"{value:.1%}"
    return _format_number(value) if isinstance(value, float) else str(value)


def _format_number(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return (f"{value:,.0f}" if value == round(value) else f"{value:,.3f}").replace("-", "−")


_TEMPLATES = load_templates(Path(__file__).parent / "templates")
_TEMPLATES.filters["cells"] = format_cells
_TEMPLATES.filters["heading"] = format_heading
