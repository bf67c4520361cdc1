"""The text of a response: what is stored of it, and what is refused."""

from __future__ import annotations

import unicodedata

from core.errors import ForetellError
from study.tasks.task import Task

MOST_CHARACTERS = 200
"""Of a text, as `dashboard/runner/name.js` counts them."""
MOST_SENT = 64 * 1024
"""Characters of a request: as many as it may have, so that a longer text is refused with a reason."""
KEPT_BREAKS = "\n\t"


def refuse_text(task: Task, text: str | None) -> None:
    """Refuse a text that the task does not take.

    Raises
    ------
    ForetellError
        There is a text where none is asked for, none where one is, or it is too long or not readable.
    """
    if not task.is_written:
        if text is not None:
            raise ForetellError("This study asks for an option, not for a text.")
        return
    if not text:
        raise ForetellError("This study asks for a text: write a few words before you respond.")
    if len(text) > MOST_CHARACTERS:
        raise ForetellError(
            f"The text has {len(text):,} characters, and at most {MOST_CHARACTERS} are kept. Shorten it."
        )
    if any(unicodedata.category(one) in ("Cc", "Cs") and one not in KEPT_BREAKS for one in text):
        raise ForetellError("The text has control characters, which cannot be stored. Type it again.")
    if all(unicodedata.category(one)[0] in "CZ" for one in text):
        raise ForetellError("The text has no visible character: write a few words before you respond.")
