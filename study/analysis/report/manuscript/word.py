"""A draft as a Word document, with its tables in APA style; python-docx is imported only where one is written."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

import docx
from docx.oxml.ns import qn
from docx.oxml.parser import OxmlElement
from docx.shared import Inches, Pt

from study.analysis.report.document import format_cells, split_marks
from study.analysis.report.manuscript.manuscript import DRAFT, Manuscript, ManuscriptFigure, ManuscriptTable
from study.analysis.report.static import write_png

if TYPE_CHECKING:
    from docx.document import Document
    from docx.table import Table
    from docx.text.paragraph import Paragraph

FONT, SIZE, SMALL = "Times New Roman", 12, 9
"""The sizes of text and tables, points."""
MARGIN, WIDTH = 1.0, 6.5
"""Of a page, and of its text, inches."""
NARROWEST, LONGEST = 10, 34
"""Letters that the columns of a table have room for, and after which a text is broken."""
CODE_FONT = "Courier New"
_MOMENT = (1980, 1, 1, 0, 0, 0)
"""Of every file in the archive: the same analysis gives the same bytes."""
_RULED = {"top": ("first",), "bottom": ("first", "last")}
"""The borders of a table in APA style: above and below the headings, and below the last row."""


def write_word(draft: Manuscript) -> bytes:
    """Write a draft as a Word document (.docx)."""
    document = docx.Document()
    _set_page(document)
    document.add_heading(draft.title, 0)
    _add_text(document.add_paragraph(), DRAFT)
    document.add_heading("Method", 1)
    for heading, text in draft.method.items():
        document.add_heading(heading, 2)
        _add_text(document.add_paragraph(), text)
    document.add_heading("Results", 1)
    for text in draft.results:
        _add_text(document.add_paragraph(), text)
    document.add_heading("References", 1)
    for text in draft.references:
        _indent(_add_text(document.add_paragraph(), text))
    for number, table in enumerate(draft.tables, start=1):
        _add_table(document, table, number)
    for number, figure in enumerate(draft.figures, start=1):
        _add_figure(document, figure, number)
    return _save(document)


def _set_page(document: Document) -> None:
    section = document.sections[0]
    section.left_margin = section.right_margin = Inches(MARGIN)
    normal = document.styles["Normal"]
    normal.font.name, normal.font.size = FONT, Pt(SIZE)
    for style in ("Title", "Heading 1", "Heading 2"):
        document.styles[style].font.name = FONT
        document.styles[style].element.rPr.rFonts.set(qn("w:asciiTheme"), "")
        document.styles[style].font.color.rgb = None


def _add_text(paragraph: Paragraph, text: str) -> Paragraph:
    """Add text, with what is marked in italics or as a formula."""
    for kind, piece in split_marks(text):
        run = paragraph.add_run(piece)
        run.italic = kind == "*"
        if kind == "`":
            run.font.name = CODE_FONT
    return paragraph


def _indent(paragraph: Paragraph) -> None:
    """Indent all lines of a reference but the first."""
    paragraph.paragraph_format.left_indent, paragraph.paragraph_format.first_line_indent = Pt(36), Pt(-36)


def _add_figure(document: Document, shown: ManuscriptFigure, number: int) -> None:
    _add_title(document, f"Figure {number}", shown.title)
    document.add_picture(io.BytesIO(write_png(shown.figure)), Inches(WIDTH))
    document.paragraphs[-1].paragraph_format.keep_with_next = True
    _add_text(document.add_paragraph(), f"*Note.* {shown.note}").paragraph_format.space_after = Pt(24)


def _add_title(document: Document, number: str, title: str) -> None:
    """Add the number and title of a table or figure, above it as in APA style."""
    added = document.add_paragraph()
    added.paragraph_format.keep_with_next = True
    added.add_run(number).bold = True
    added.add_run("\n")
    added.add_run(title).italic = True


def _add_table(document: Document, shown: ManuscriptTable, number: int) -> None:
    _add_title(document, f"Table {number}", shown.title)
    rows = [shown.columns, *format_cells(shown.table)]
    table = document.add_table(len(rows), len(rows[0]))
    table.autofit = False
    widths = _share_width(rows)
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width
    for row, texts in zip(table.rows, rows, strict=True):
        for cell, text, width in zip(row.cells, texts, widths, strict=True):
            cell.width = width
            _set_small(cell.paragraphs[0], text)
    _rule(table)
    note = _add_text(document.add_paragraph(), f"*Note.* {shown.note}" if shown.note else "")
    note.paragraph_format.space_before, note.paragraph_format.space_after = Pt(6), Pt(24)


def _share_width(rows: Sequence[Sequence[str]]) -> list[Inches]:
    """Share the page's width among columns by their longest texts, none of them less than a number needs."""
    longest = [min(LONGEST, max(NARROWEST, *map(len, column))) for column in zip(*rows, strict=True)]
    return [Inches(WIDTH * length / sum(longest)) for length in longest]


def _set_small(paragraph: Paragraph, text: str) -> None:
    paragraph.paragraph_format.space_after = Pt(0)
    paragraph.add_run(text).font.size = Pt(SMALL)


def _rule(table: Table) -> None:
    """Draw the three lines of a table in APA style."""
    rows = {"first": table.rows[0], "last": table.rows[-1]}
    for edge, where in _RULED.items():
        for cell in (cell for name in where for cell in rows[name].cells):
            borders = cell._tc.get_or_add_tcPr().find(qn("w:tcBorders"))
            if borders is None:
                borders = OxmlElement("w:tcBorders")
                cell._tc.get_or_add_tcPr().append(borders)
            line = OxmlElement(f"w:{edge}")
            line.set(qn("w:val"), "single")
            line.set(qn("w:sz"), "6")
            borders.append(line)


def _save(document: Document) -> bytes:
    """Return the document's bytes, without the moment at which it was written."""
    written, fixed = io.BytesIO(), io.BytesIO()
    document.save(written)
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(fixed, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(zipfile.ZipInfo(name, _MOMENT), source.read(name), zipfile.ZIP_DEFLATED)
    return fixed.getvalue()
