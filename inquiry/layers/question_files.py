"""A question of Layers asked of a network and a set by their names, and its result as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
from PIL import Image

from core.errors import ForetellError
from core.parameters import parse_parameters
from core.registry import Plugin
from core.types import Progress, silent
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerInspection, LayerQuery
from inquiry.layers.record import record_of
from study.network.sources import open_classifier, set_named
from study.workspace.blocks import table_files


def inspect_files(request: LayerQuery, out: Path, progress: Progress = silent) -> tuple[Path, Path]:
    """Write ``<model>.<question>.csv`` and ``.json`` into ``out``; a killed run resumes with the same request.

    Questions with a drawing also write ``<model>.<question>.<name>.png``.
    """
    parse_parameters(QUESTIONS[request.question], request.parameters)  # refuse wrong ones before the network is loaded
    classifier = open_classifier(request.model, Path.cwd())
    images = set_named(request.image_set, request.settings)
    same = request.other in (None, request.model)
    compared = classifier if same else open_classifier(str(request.other), Path.cwd())
    inspected = LayerInspection(classifier, images, request, compared, out / "parts")
    table = ask_question(inspected, progress)
    name = f"{classifier.file_name}.{request.question}"
    for caption, image in draw_result(inspected).items():
        out.mkdir(parents=True, exist_ok=True)
        image.save(out / f"{name}.{caption.replace(' ', '_')}.png")
    return table_files(out, name, table, inspected.facts, out / "parts")


def ask_question(inspected: LayerInspection, progress: Progress = silent) -> pd.DataFrame:
    """Ask the question of ``inspected``, with its parameters.

    Raises
    ------
    ForetellError
        Wrong parameters, or a question of an installed package that fails.
    """
    name = inspected.request.question
    question, plugin = QUESTIONS[name], QUESTIONS.plugins.get(name)
    given = parse_parameters(question, inspected.request.parameters)
    if plugin is None:
        table: pd.DataFrame = question(inspected, progress, **given)
        return table
    return _ask_package(plugin, lambda report: question(inspected, report, **given), progress)


def _ask_package(plugin: Plugin, ask: Callable[[Progress], object], progress: Progress) -> pd.DataFrame:
    """Turn what a package's question raises into one sentence, except what ``progress`` raises to cancel it."""
    stops: list[Exception] = []

    def report(done: int, total: int, what: str) -> None:
        try:
            progress(done, total, what)
        except Exception as stop:
            stops.append(stop)
            raise

    said = f"The question {plugin.name} of the package {plugin.package}"
    try:
        table = ask(report)
    except (ForetellError, torch.OutOfMemoryError):
        raise
    except (Exception, SystemExit) as error:  # the package's own code
        if error in stops:
            raise
        cause = str(error).partition("\n")[0]
        raise ForetellError(f"{said} failed: {type(error).__name__}: {cause}. Repair that package.") from error
    if not isinstance(table, pd.DataFrame):
        raise ForetellError(f"{said} returned {type(table).__name__}: it must return a pandas.DataFrame.")
    return table


def shorten_table(question: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that the command prints of a question's table, without those that are empty texts."""
    short = table[list(record_of(question).table.printed)]
    return short.loc[:, (short != "").any()]


def draw_result(inspected: LayerInspection) -> dict[str, Image.Image]:
    """Draw what a question found, by name; nothing for questions whose result is a table alone."""
    drawing = record_of(inspected.request.question).drawing
    return dict(drawing.draw(inspected)) if drawing else {}
