"""A draft of the method and results sections, with references and tables: in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go

from study.analysis.report.document import format_cells, list_headings
from study.analysis.report.latex import write_table
from study.analysis.report.manuscript.references import list_references

DRAFT = (
    "This draft was written from the plan, the frozen study and the responses. Check every sentence, and fill in what "
    "is in square brackets."
)


class ManuscriptTable(NamedTuple):
    """A table with its title and the note beneath it; ``headings`` are those of this table alone."""

    title: str
    table: pd.DataFrame
    note: str = ""
    headings: Mapping[str, str] = {}
    coverage: str = "95%"

    @property
    def columns(self) -> list[str]:
        """Its headings in words."""
        return list_headings(self.table, self.headings, self.coverage)

    @property
    def latex(self) -> str:
        """It for LaTeX, with booktabs."""
        return write_table(self.columns, format_cells(self.table))


class ManuscriptFigure(NamedTuple):
    """A figure with its title and the note beneath it, and the file that has it too."""

    title: str
    figure: go.Figure
    note: str
    file: str


class Manuscript(NamedTuple):
    """A draft: paragraphs of the method by their headings, those of the results, tables and figures.

    In a paragraph, `*` surrounds italics and a backtick formulas.
    """

    title: str
    method: Mapping[str, str]
    results: Sequence[str]
    tables: Sequence[ManuscriptTable]
    figures: Sequence[ManuscriptFigure]

    @property
    def references(self) -> list[str]:
        """The publications that the method and notes beneath tables cite."""
        return list_references([*self.method.values(), *(table.note for table in self.tables)])

    @property
    def markdown(self) -> str:
        """It in Markdown, without the tables, which are in files of their own."""
        method = [f"### {heading}\n\n{text}" for heading, text in self.method.items()]
        parts = [
            *(f"# {self.title}", DRAFT, "## Method", *method, "## Results", *self.results),
            *("## References", *self.references),
            *(
                f"**Figure {number}**\n*{one.title}*\n\n![{one.title}]({one.file})\n\n*Note.* {one.note}"
                for number, one in enumerate(self.figures, start=1)
            ),
        ]
        return "\n\n".join(parts) + "\n"
