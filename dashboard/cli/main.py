"""The command line: ``python foretell.py VERB``. Every error is one sentence; ``--debug`` shows the traceback."""

from __future__ import annotations

import sys

import typer

from core.errors import ForetellError
from dashboard.cli import (
    access,
    analysis,
    assertions,
    bench,
    concepts,
    doctor,
    explain,
    layers,
    prior,
    recruiting,
    serve,
    study,
    uncertainty,
    units,
)
from dashboard.cli.terminal import say
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
    units,
    uncertainty,
    concepts,
    layers,
    assertions,
    prior,
    study,
    recruiting,
    analysis,
    access,
    doctor,
):
    for verb in verbs.VERBS:
        app.command()(verb)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(bench.bench)


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
