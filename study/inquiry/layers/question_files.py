"""A question of Layers asked of a network and a set by their names, and its result as files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from PIL import Image

from core.parameters import parse_parameters
from core.types import Progress, silent
from study.inquiry.layers import QUESTIONS
from study.inquiry.layers.inspection import LayerInspection, LayerQuery
from study.inquiry.layers.record import record_of
from study.network.sources import open_classifier, set_named
from study.workspace.blocks import table_files


def inspect_files(request: LayerQuery, out: Path, progress: Progress = silent) -> tuple[Path, Path]:
    """Write ``<model>.<question>.csv`` and ``.json`` into ``out``; a killed run resumes with the same request.

    Questions with a drawing also write ``<model>.<question>.<name>.png``.
    """
    question = QUESTIONS[request.question]
    given = parse_parameters(question, request.parameters)
    classifier = open_classifier(request.model, Path.cwd())
    images = set_named(request.image_set, request.settings)
    same = request.other in (None, request.model)
    compared = classifier if same else open_classifier(str(request.other), Path.cwd())
    inspected = LayerInspection(classifier, images, request, compared, out / "parts")
    table: pd.DataFrame = question(inspected, progress, **given)
    name = f"{classifier.file_name}.{request.question}"
    for caption, image in draw_result(inspected).items():
        out.mkdir(parents=True, exist_ok=True)
        image.save(out / f"{name}.{caption.replace(' ', '_')}.png")
    return table_files(out, name, table, inspected.facts, out / "parts")


def shorten_table(question: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that the command prints of a question's table, without those that are empty texts."""
    short = table[list(record_of(question).table.printed)]
    return short.loc[:, (short != "").any()]


def draw_result(inspected: LayerInspection) -> dict[str, Image.Image]:
    """Draw what a question found, by name; nothing for questions whose result is a table alone."""
    drawing = record_of(inspected.request.question).drawing
    return dict(drawing.draw(inspected)) if drawing else {}
