"""The report as one self-contained page: text, tables and figures, with the hashes of data, plan, study and code."""

from __future__ import annotations

import html
import math
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version

import pandas as pd
import plotly.graph_objects as go

from study.analysis.exploratory import ExploratoryResult
from study.analysis.responses import Responses
from study.analysis.sentences import p_text
from study.bundle import Manifest
from study.plan.preregistration import AnalysisPlan
from study.workspace.provenance import code_digest

PACKAGES = ("numpy", "scipy", "pandas", "glmm", "statsmodels", "plotly")
CHANCES = ("p", "p_holm")
SHOWN = 14
"""Rows of a table shown at once."""
_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --line: #ccc; --quiet: #666 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181c; --line: #444; --quiet: #a0a0a0 } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem }
h2 { margin-top: 2.5rem } .table { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem }
th, td { padding: .25rem .75rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap }
th:first-child, td:first-child { text-align: left }
.label { font-size: .8rem; border: 1px solid var(--quiet); border-radius: 1rem; padding: .1rem .6rem;
  color: var(--quiet); font-weight: normal; vertical-align: middle }
.quiet { color: var(--quiet) } code { font-size: .85em; overflow-wrap: anywhere }
"""


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


def page(
    title: str,
    answer: Sequence[str],
    sections: Sequence[tuple[str, str, str, pd.DataFrame, go.Figure | None]],
    notes: Sequence[str],
    made_from: Mapping[str, str],
) -> str:
    """Compose the page: main result, sections (title, label, sentence, table, figure), caveats and provenance."""
    parts = [f"<h1>{html.escape(title)}</h1>", *[f"<p><strong>{html.escape(line)}</strong></p>" for line in answer]]
    drawn = 0
    for number, (heading, label, says, table, figure) in enumerate(sections):
        parts.append(f'<h2>{html.escape(heading)} <span class="label">{label}</span></h2>')
        parts += [f'<p class="quiet">{html.escape(says)}</p>'] if says else []
        if figure is not None:
            parts.append(figure.to_html(full_html=False, include_plotlyjs=drawn == 0, div_id=f"figure{number}"))
            drawn += 1
        parts.append(_table(table))
    parts += ["<h2>Caveats</h2>", _list(notes or ["No warnings."])]
    rows = pd.DataFrame(list(made_from.items()), columns=["source", ""])
    parts += ["<h2>Provenance</h2>", _table(rows)]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def list_exploratory_sections(
    measures: Sequence[ExploratoryResult],
) -> list[tuple[str, str, str, pd.DataFrame, go.Figure | None]]:
    """Convert exploratory measures to sections."""
    return [(m.title, "exploratory", m.says, m.table, m.figure) for m in measures]


def _list(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"


def _table(table: pd.DataFrame) -> str:
    """Format a table: three decimals, whole integers, p as articles print it, a dash if missing; long tables fold."""
    p = {name: chance for name in CHANCES if name in table}
    shown = table.to_html(index=False, na_rep="–", border=0, float_format=number, formatters=p, escape=True)
    framed = f'<div class="table">{shown}</div>'
    if len(table) <= SHOWN:
        return framed
    return f"<details><summary>The numbers ({len(table)} rows)</summary>{framed}</details>"


def chance(value: float | None) -> str:
    """Format a p-value as articles print it."""
    return p_text(None if pd.isna(value) else value)


def number(value: float) -> str:
    """Format a number to three decimals, whole numbers without."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:,.0f}" if value == round(value) else f"{value:,.3f}"
