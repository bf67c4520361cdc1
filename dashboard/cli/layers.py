"""``layers``: what the layers of a network represent, and how close its decision boundaries are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashboard.cli.options import Model, parse_pairs, parse_settings
from dashboard.cli.terminal import Bars, say


def layers(
    question: Annotated[str | None, typer.Argument(help="The question; --list shows all questions.")] = None,
    model: Model = "scenes",
    layer: Annotated[list[str] | None, typer.Option(help="A layer. Repeatable; a selection by default.")] = None,
    other: Annotated[str | None, typer.Option(help="A second network to compare with.")] = None,
    other_layer: Annotated[list[str] | None, typer.Option(help="Its layers; the same names by default.")] = None,
    param: Annotated[list[str] | None, typer.Option(help="k=v, a parameter of the question. Repeatable.")] = None,
    image_set: Annotated[str, typer.Option("--set", help="Images with labels: an image set.")] = "scenes",
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the set: name=value. Repeatable.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("layers"),
    list_questions: Annotated[bool, typer.Option("--list", help="Print the questions and stop.")] = False,
) -> None:
    """Ask what the layers of a network represent: writes MODEL.QUESTION.csv, and .json with how it was computed.

    After an interruption the same command continues.

    Example: python foretell.py layers dissection --setting size=160 --layer features.4 --out layers
    """
    from core.errors import ForetellError
    from inquiry.layers import QUESTIONS
    from inquiry.layers.inspection import LayerQuery
    from inquiry.layers.question_files import inspect_files

    if list_questions:
        _list_questions()
        return
    if question is None:
        raise ForetellError(f"Give a question: {', '.join(QUESTIONS)}.")
    request = LayerQuery(
        question=question,
        model=model,
        image_set=image_set,
        settings=parse_settings(setting or []),
        layers=tuple(layer or ()),
        other=other,
        other_layers=tuple(other_layer or ()),
        parameters=parse_pairs(param or [], "--param", "name=value"),
        seed=seed,
    )
    with Bars() as progress:
        files = inspect_files(request, out, progress)
    _say_result(question, files)


def _say_result(question: str, files: tuple[Path, ...]) -> None:
    """Print the table of a question, if it is short, with its notes and the names of its files."""
    import pandas as pd

    from inquiry.layers.question_files import shorten_table
    from inquiry.layers.record import record_of

    table = pd.read_csv(files[0], keep_default_na=False)
    if record_of(question).table.printed:
        say(shorten_table(question, table).to_string(index=False))
    for line in (*dict.fromkeys(table.get("note", [])), *map(str, files)):
        if line:
            say(line)


def _list_questions() -> None:
    from core.errors import ForetellError
    from core.parameters import summary
    from inquiry.layers import QUESTIONS

    for name in QUESTIONS:
        try:
            say(f"{name}: {summary(QUESTIONS[name])}")
        except ForetellError as error:  # an installed package that fails takes nothing else with it
            say(f"{name}: {error}")
    for sentence in QUESTIONS.conflicts:
        say(sentence)
