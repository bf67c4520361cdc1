"""The error that a user can correct: one sentence that names the cause and the remedy."""

from __future__ import annotations


class ForetellError(Exception):
    """An error that the user can correct. The message says what is wrong, where, and what to do.

    The command line prints it without a traceback and exits with status 2; pages show it in a box.
    """
