"""The error a user can act on: one sentence that names the culprit and the remedy."""

from __future__ import annotations


class ForetellError(Exception):
    """Something the user can mend. The message says what is wrong, where, and what to do.

    The command line prints it without a traceback and exits with status 2; pages show it in a box.
    """
