"""The report as one self-contained page and in Markdown, from the templates next to this file."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go
from markupsafe import Markup

from study.analysis.models.sentences import keep_whole
from study.analysis.planned.nested import NestedAnalysis
from study.analysis.responses.reading import Responses
from study.analysis.words.cells import Forms, list_forms
from study.analysis.words.headings import format_headings
from study.analysis.words.wording import IN_WORDS
from study.bundle import Manifest
from study.plan.preregistration import AnalysisPlan
from study.workspace.jinja import load_templates
from study.workspace.provenance import code_digest

PACKAGES = ("numpy", "scipy", "pandas", "glmm", "statsmodels", "plotly")
SHOWN = 14
"""Rows of a table shown at once; longer ones are folded, or in a file of their own."""
MARKED = re.compile(r"(\*(?=\S)[^*`]+\*|`[^`]+`)")
"""Italics, as ``*p*``, and formulas, as ```y ~ a * b```."""
TAGS = {"*": "em", "`": "code"}


class Part(NamedTuple):
    """A table of a section.

    Attributes
    ----------
    headings
        Those of this table alone.
    coverage
        Of its intervals.
    summary
        If given, the table is folded under these words.
    """

    table: pd.DataFrame
    headings: Mapping[str, str] = {}
    coverage: str = "95%"
    summary: str = ""


class Section(NamedTuple):
    """A section of the page; links name it by its anchor, and ``lines`` are sentences above its tables."""

    anchor: str
    heading: str
    label: str
    says: str
    parts: Sequence[Part]
    figure: go.Figure | None = None
    lines: Sequence[str] = ()


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
            section.figure.to_html(
                full_html=False,
                include_plotlyjs=next(drawn) == 0,
                div_id=f"figure{number}",
                config={"displaylogo": False},
            )
        )
        for number, section in enumerate(sections)
    ]


def tabulate_models(analysis: NestedAnalysis) -> pd.DataFrame:
    """Tabulate log-likelihood, parameters and convergence of each model."""
    rows = [(name, one.loglik, one.df, "yes" if one.converged else "no") for name, one in analysis.models.items()]
    return pd.DataFrame(rows, columns=["model", "log-likelihood", "parameters", "converged"])


def format_cells(table: pd.DataFrame) -> list[list[str]]:
    """Format a table: numbers as on the pages, codes in words, a dash if missing."""
    forms = list_forms(table)
    rows = table.to_dict("records")
    return [[_format(str(name), value, forms) for name, value in row.items()] for row in rows]


def _format(name: str, value: Any, forms: Forms) -> str:
    if pd.isna(value):
        return "–"
    if name in forms:
        return forms[name](value)
    return IN_WORDS[name](value) if name in IN_WORDS and isinstance(value, str) else str(value)


def list_headings(table: pd.DataFrame, own: Mapping[str, str], coverage: str) -> list[str]:
    """List the headings of a table's columns in words."""
    return list(format_headings(map(str, table.columns), own, coverage).values())


def find_text_columns(table: pd.DataFrame) -> list[bool]:
    """Find the columns of words, whose lines may break and begin at the left."""
    numbers = set(table.select_dtypes("number"))
    return [name not in numbers for name in table]


def split_marks(text: str) -> list[tuple[str, str]]:
    """Split a paragraph of a manuscript into pieces, each with its mark: `*` of italics, a backtick, or none."""
    pieces = filter(None, MARKED.split(text))
    return [(piece[0], piece[1:-1]) if MARKED.fullmatch(piece) else ("", piece) for piece in pieces]


def mark(text: str) -> Markup:
    """Write a paragraph of a manuscript for HTML: what `*` surrounds in italics, and formulas as code."""
    return Markup("").join(
        Markup("<{0}>{1}</{0}>").format(TAGS[kind], piece) if kind else piece for kind, piece in split_marks(text)
    )


_TEMPLATES = load_templates(Path(__file__).parent / "templates")
_TEMPLATES.filters["cells"] = format_cells
_TEMPLATES.filters["whole"] = keep_whole
_TEMPLATES.filters["marked"] = mark
_TEMPLATES.filters["headings"] = list_headings
_TEMPLATES.filters["texts"] = find_text_columns
