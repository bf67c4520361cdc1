"""The page ``docs/reference/commands.md``: every command with its options, from typer."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import typer

import foretell
from dashboard.cli.main import build_app
from generators.markdown import escape_cell, format_table

HEAD = """\
# Commands

<!-- Written by `python docs/generate.py` from the command line's own help. Do not edit by hand. -->

`python foretell.py COMMAND` runs a command; `COMMAND --help` prints what is listed here. Exit codes: 0 done, 1 a check
failed or something broke, 2 the input is wrong (the message says how), 130 interrupted. `--debug` shows the traceback
of an error.
"""

STANDALONE = {
    "test": "Run every test. `--no-browser` leaves out those that need a browser; other arguments go to pytest.",
    "docs": "Build this documentation as a website and open it. `--no-browser` only builds it, `--out` is the folder.",
}
"""Commands that `foretell.py` handles itself: typer does not know them."""

KINDS = {int: "whole number", float: "number", Path: "path"}


def render_page() -> str:
    """Render the whole page."""
    groups = typer.main.get_command(build_app()).commands  # type: ignore[attr-defined]
    order = [name for name in foretell.summaries() if name in groups]
    parts = [HEAD, *format_table(["command", "purpose"], _overview()), ""]
    for name in order:
        parts += _describe(groups[name])
    for name, text in STANDALONE.items():
        parts += [f"## {name}", "", text, ""]
    return "\n".join(parts)


def _overview() -> Iterator[tuple[str, str]]:
    for name, purpose in foretell.summaries().items():
        yield f"[`{name}`](#{name})", escape_cell(purpose)


def _describe(command: Any) -> list[str]:
    text, example = _split_example(inspect.cleandoc(command.help or ""))
    parts = [f"## {command.name}", "", text, ""]
    if example:
        parts += ["```bash", example, "```", ""]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    if arguments:
        rows = [(f"`{p.name.upper()}`", _help(p)) for p in arguments]
        parts += [*format_table(["argument", "meaning"], rows), ""]
    if options:
        rows = [(_names(p), _kind(p), _default(p), _help(p)) for p in options]
        parts += [*format_table(["option", "value", "default", "meaning"], rows), ""]
    return parts


def _split_example(help_text: str) -> tuple[str, str]:
    """Separate the last ``Example: ...`` from the description."""
    before, marker, after = help_text.replace("``", "`").rpartition("Example: ")
    if not marker:
        return help_text.replace("``", "`"), ""
    return before.rstrip(), " ".join(after.split())


def _help(parameter: Any) -> str:
    return escape_cell(getattr(parameter, "help", None) or "")


def _names(option: Any) -> str:
    return ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))


def _kind(option: Any) -> str:
    if option.is_flag:
        return ""
    annotation = option.type_descriptor.annotation
    inner = (get_args(annotation) or (annotation,))[0]
    kind = KINDS.get(inner, "text")
    return f"{kind}, repeatable" if option.multiple else kind


def _default(option: Any) -> str:
    if option.required:
        return "required"
    if option.is_flag or option.default in (None, (), []) or callable(option.default):
        return ""
    return f"`{option.default}`"
