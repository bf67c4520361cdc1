"""The command line: ``python foretell.py VERB``. Every error is one sentence; ``--debug`` shows the traceback."""

from __future__ import annotations

import sys

import typer

from core.errors import ForetellError
from dashboard.commands import (
    analysis,
    assertions,
    bench,
    concepts,
    doctor,
    doors,
    explain,
    inspect,
    prior,
    recruiting,
    serve,
    study,
    uncertainty,
    visualise,
)
from dashboard.terminal import say
from data.errors import DataError

app = typer.Typer(
    help="Do explanations help people foretell what an AI will say?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for verbs in (
    serve,
    explain,
    visualise,
    uncertainty,
    concepts,
    inspect,
    assertions,
    prior,
    study,
    recruiting,
    analysis,
    doors,
    doctor,
):
    for verb in verbs.VERBS:
        app.command()(verb)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(bench.bench)


WORKSPACE = (
    "build", "verify", "simulate", "export", "links", "access", "withdraw", "bonus", "reconcile", "analyze", "power",
    "password", "login", "backup", "restore", "serve",
)  # fmt: skip
"""Commands that open the workspace to write, at least to its database."""


@app.callback()
def prepare(context: typer.Context) -> None:
    """Keep the workspace for this user alone before a command writes to it."""
    if context.invoked_subcommand not in WORKSPACE:
        return
    from study.files import private_files
    from study.workspace import close_to_others

    context.with_resource(private_files())
    for sentence in close_to_others():
        say(sentence, error=True)


def main() -> None:
    """Run a verb. Exit codes: 0 done, 1 a check failed or something broke, 2 the input is wrong, 130 interrupted."""
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]
    try:
        app(prog_name="python foretell.py")
    except (ForetellError, DataError) as error:
        _stop(str(error), 2, debug)
    except KeyboardInterrupt:
        _stop("Interrupted. What was finished is kept; the same command goes on from there.", 130, debug)
    except Exception as error:
        message = f"Unexpected {type(error).__name__}: {error} (run again with --debug and report the traceback)"
        _stop(message, 1, debug)


def _stop(message: str, code: int, debug: bool) -> None:
    if debug:
        raise
    say(f"Error: {message}", error=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
