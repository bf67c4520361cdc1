"""Templates of pages and reports, in Jinja2; values in HTML are escaped."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape


def load_templates(folder: Path) -> Environment:
    """Open the templates of a folder; in those named ``.html`` every value is escaped."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
