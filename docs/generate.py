"""Write what is made from code and results: ``python docs/generate.py``. A test fails where something is not current.

Pages are written first; then every notebook is executed, and the outputs of those that have changed are replaced.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from generators import (  # noqa: E402
    benchmarks,
    catalogue,
    commands,
    concepts,
    dictionary,
    extensions,
    faithfulness,
    gallery,
    interruptions,
    reanalysis,
    statistics,
    studyfile,
    training,
    zoo,
)

PAGES = {
    "benchmarks/README.md": benchmarks.render_page,
    "docs/data-dictionary.md": dictionary.render_page,
    "docs/faithfulness.md": faithfulness.render_page,
    "docs/zoo.md": zoo.render_page,
    "docs/training.md": training.render_page,
    "docs/concepts.md": concepts.render_page,
    "docs/statistics.md": statistics.render_page,
    "docs/studies.md": gallery.render_page,
    "docs/results/interruptions.md": interruptions.render_page,
    "docs/results/reanalysis.md": reanalysis.render_page,
    "docs/reference/catalogue.md": catalogue.render_page,
    "docs/reference/extensions.md": extensions.render_page,
    "docs/reference/commands.md": commands.render_page,
    "docs/reference/study-file.md": studyfile.render_page,
    **benchmarks.list_figures(),
}
"""Path of each generated page and figure, and the function that renders it."""


def write_pages() -> None:
    """Write every generated page in its place."""
    for name, render in PAGES.items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    write_pages()

    from generators.notebooks import write_outputs  # Jupyter is imported only where notebooks are executed

    write_outputs()
