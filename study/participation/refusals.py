"""Refusals of a participant's request: a code and a sentence for programs, a text of the catalogue for the page."""

from __future__ import annotations

from typing import Literal

from core.errors import ForetellError

Says = Literal[
    "full", "paused", "closed", "ui.wrong", "refused_moved", "refused_stale", "refused_elsewhere", "refused_unknown",
    "refused_link", "refused_code", "refused_preview", "refused_known", "refused_invited", "refused_earlier",
    "refused_busy", "refused_finished", "refused_early",
]  # fmt: skip
"""Keys of the catalogue: what the page shows comes from there, in the study's language."""


class Refusal(ForetellError):
    """A request that cannot be granted; `code` is the HTTP status that says why, `says` what a participant is told."""

    def __init__(self, code: int, message: str, says: Says = "ui.wrong") -> None:
        super().__init__(message)
        self.code, self.says = code, says
