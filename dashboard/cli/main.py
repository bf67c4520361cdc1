"""The command line: ``python foretell.py COMMAND``. Every error is one sentence; ``--debug`` shows the traceback."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable

import typer

from core.errors import ForetellError
from dashboard.cli.commands import COMMANDS
from dashboard.cli.terminal import say
from data.errors import DataError

FORWARDING = {"allow_extra_args": True, "ignore_unknown_options": True}


def build_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Make the command line of these commands; the module of each is imported."""
    app = typer.Typer(
        help="Do explanations help people predict what an AI will say?",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_keep_private)
    for name in names:
        module, _, function = COMMANDS[name].function.partition(":")
        command = getattr(importlib.import_module(module), function)
        app.command(name, context_settings=FORWARDING if COMMANDS[name].forwards else None)(command)
    return app


def _keep_private(context: typer.Context) -> None:
    """Keep the workspace for this user alone before a command writes to it."""
    name = context.invoked_subcommand
    if name is None or not COMMANDS[name].opens_workspace:
        return
    from study.workspace.files import private_files
    from study.workspace.workspace import close_to_others, require_workspace

    if COMMANDS[name].needs_workspace and not {"--help", "-h"} & set(sys.argv):
        require_workspace()
    context.with_resource(private_files())
    for sentence in close_to_others():
        say(sentence, error=True)


def main() -> None:
    """Run a command. Exit codes: 0 done, 1 a check failed or something broke, 2 wrong input, 130 interrupted."""
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]
    try:
        build_app(_find_requested_commands())(prog_name="python foretell.py")
    except (ForetellError, DataError) as error:
        _stop(str(error), 2, debug)
    except KeyboardInterrupt:
        _stop("Interrupted. Finished parts are kept; the same command continues from there.", 130, debug)
    except Exception as error:
        message = f"Unexpected {type(error).__name__}: {error} (run again with --debug and report the traceback)"
        _stop(message, 1, debug)


def _find_requested_commands() -> Iterable[str]:
    """Return the command that is asked for, or all of them for the help."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    return (name,) if name in COMMANDS else COMMANDS


def _stop(message: str, code: int, debug: bool) -> None:
    if debug:
        raise
    say(f"Error: {message}", error=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
